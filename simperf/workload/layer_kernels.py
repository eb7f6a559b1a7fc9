"""Which kernels a transformer layer runs, where a library or a program has a choice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["LayerKernels"]


@dataclass(frozen=True, slots=True)
class LayerKernels:
    """Kernels of a transformer layer, for models by their dimensions.

    Parameters
    ----------
    attention : str
        one kernel; batched products around one kernel that scales, masks and normalizes; or a kernel for each operation
    norm : str
        one kernel, or one for each operation; auto: layer normalization is one kernel, RMS normalization is several
    """

    attention: Literal["flash", "fused-softmax", "unfused"] = "flash"
    norm: Literal["auto", "fused", "unfused"] = "auto"

    def fuses_norm(self, kind: str) -> bool:
        """Whether a normalization of this kind is one kernel.

        Examples
        --------
        >>> LayerKernels().fuses_norm("layer"), LayerKernels().fuses_norm("rms")
        (True, False)
        """
        return kind == "layer" if self.norm == "auto" else self.norm == "fused"
