"""Number formats: how wide an element is, and which name a GPU part's peak goes by."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from simperf.errors import UnknownNameError

__all__ = ["PRECISIONS", "SINGLE", "element_size"]

#: precision -> bytes that one element takes in memory. TF32 is a way to multiply fp32 numbers
#: (NVIDIA A100 whitepaper, 2020): in memory it is fp32.
PRECISIONS: Mapping[str, float] = MappingProxyType(
    {"fp64": 8, "fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2, "fp8": 1, "int8": 1, "fp4": 0.5}
)


def element_size(dtype: str) -> float:
    """Bytes of one element.

    Parameters
    ----------
    dtype : str
        A key of `PRECISIONS`.

    Returns
    -------
    float
        width [B]; of 4 bits half a byte

    Raises
    ------
    UnknownNameError
        No such precision.

    Examples
    --------
    >>> element_size("fp32"), element_size("tf32"), element_size("bf16")
    (4, 4, 2)
    """
    try:
        return PRECISIONS[dtype]
    except KeyError:
        raise UnknownNameError("precision", dtype, PRECISIONS) from None


#: bytes of an element of fp32: of master weights, moments, and what norms and attention keep of a row
SINGLE = element_size("fp32")
