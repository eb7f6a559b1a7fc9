"""A line of a table of errors: how many there are, their median, the median of their sizes, and a large one."""

import numpy as np


def error_line(label: str, errors: np.ndarray, *, width: int, digits: int = 5, share: float = 0.9) -> str:
    """A row whose last column is the size that `share` of the errors do not exceed; 1.0 gives the largest."""
    size = np.abs(errors)
    numbers = f"{np.median(errors):+7.1%} {np.median(size):7.1%} {np.quantile(size, share):7.1%}"
    return f"{label:{width}} {len(size):{digits}}  {numbers}"
