"""The kernels of a transformer layer, where a library or a program has a choice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

__all__ = ["ATTENTION_LIBRARIES", "AttentionLibrary", "LayerKernels"]

#: libraries of attention kernels of which architectures have constants (`simperf.cost.attention`)
AttentionLibrary = Literal["flash-attention", "flash-attention-2", "cudnn", "tensorrt-llm"]
ATTENTION_LIBRARIES: tuple[str, ...] = get_args(AttentionLibrary)


@dataclass(frozen=True, slots=True)
class LayerKernels:
    """Kernels of layers: of transformers by their dimensions; of a traced model, attention's library and the format.

    Parameters
    ----------
    attention : str
        one kernel; batched products around one kernel that scales, masks and normalizes; or a kernel for each operation
    norm : str
        one kernel, or one for each operation; auto: layer normalization is one kernel, RMS normalization is several
    attention_library : str
        library of attention in one kernel; auto: that of the GPU's architecture, which the result tells
    memory_format : str
        of images: channels-last (NHWC), which convolutions on matrix units read as it is, or contiguous (NCHW), which a
        kernel converts for each tensor before and after
    """

    attention: Literal["flash", "fused-softmax", "unfused"] = "flash"
    norm: Literal["auto", "fused", "unfused"] = "auto"
    attention_library: Literal["auto", "flash-attention", "flash-attention-2", "cudnn", "tensorrt-llm"] = "auto"
    memory_format: Literal["channels-last", "contiguous"] = "channels-last"

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
