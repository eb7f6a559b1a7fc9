"""Which kernels a transformer layer runs, where a library or a program has a choice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

__all__ = ["ATTENTION_LIBRARIES", "AttentionLibrary", "LayerKernels"]

#: libraries of attention kernels of which architectures have constants (`simperf.cost.attention`)
AttentionLibrary = Literal["flash-attention", "flash-attention-2", "cudnn", "tensorrt-llm"]
ATTENTION_LIBRARIES: tuple[str, ...] = get_args(AttentionLibrary)


@dataclass(frozen=True, slots=True)
class LayerKernels:
    """Kernels of a transformer layer, for models by their dimensions; of a traced model, the library of its attention.

    Parameters
    ----------
    attention : str
        one kernel; batched products around one kernel that scales, masks and normalizes; or a kernel for each operation
    norm : str
        one kernel, or one for each operation; auto: layer normalization is one kernel, RMS normalization is several
    attention_library : str
        library of attention in one kernel; auto: that of the GPU's architecture, which the result tells
    """

    attention: Literal["flash", "fused-softmax", "unfused"] = "flash"
    norm: Literal["auto", "fused", "unfused"] = "auto"
    attention_library: Literal["auto", "flash-attention", "flash-attention-2", "cudnn", "tensorrt-llm"] = "auto"

    @property
    def library(self) -> str:
        """Library of attention as an operation has it: empty for that of the architecture."""
        return "" if self.attention_library == "auto" else self.attention_library

    def fuses_norm(self, kind: str) -> bool:
        """Whether a normalization of this kind is one kernel.

        Examples
        --------
        >>> LayerKernels().fuses_norm("layer"), LayerKernels().fuses_norm("rms")
        (True, False)
        """
        return kind == "layer" if self.norm == "auto" else self.norm == "fused"
