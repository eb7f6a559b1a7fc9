"""The kernels of a transformer layer, where a library or a program has a choice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Literal, get_args

from simperf.errors import Problem

__all__ = ["ATTENTION_CHOOSERS", "ATTENTION_LIBRARIES", "PRODUCT_PRECISIONS", "AttentionLibrary", "LayerKernels"]

#: libraries of attention kernels of which architectures have constants (`simperf.cost.attention`)
AttentionLibrary = Literal["flash-attention", "flash-attention-2", "flash-attention-triton", "cudnn", "tensorrt-llm"]
ATTENTION_LIBRARIES: tuple[str, ...] = get_args(AttentionLibrary)
#: what takes the kernels of one of these libraries or another: by architecture which; elsewhere the newest
#: FlashAttention. NVIDIA/TransformerEngine, transformer_engine/pytorch/attention/dot_product_attention/utils.py,
#: get_attention_backend: cuDNN's before FlashAttention's from compute capability 9.0 on, "for performance reasons"
ATTENTION_CHOOSERS: Mapping[str, Mapping[str, str]] = {
    "transformer-engine": {"hopper": "cudnn", "blackwell": "cudnn"},
}
#: precision of products: that of weights, or a recipe (`simperf.workload.product_recipe`)
ProductPrecision = Literal[
    "as-weights",
    "float8",
    "float8-rowwise",
    "float8-rowwise-gw-hp",
    "fp8-delayed",
    "fp8-current",
    "fp8-block",
    "mxfp8",
    "nvfp4",
]
PRODUCT_PRECISIONS: tuple[str, ...] = get_args(ProductPrecision)

#: what has an effect on a model that runs whole on each GPU
_EVERYWHERE = ("attention", "norm", "attention_library", "memory_format", "batch_norm")


@dataclass(frozen=True, slots=True)
class LayerKernels:
    """Kernels of layers: of transformers by their dimensions; of a traced model, attention's library and the format.

    All below `batch_norm` are for models that a layout divides; a model that runs whole on each GPU has those of
    eager PyTorch.

    Parameters
    ----------
    attention : str
        one kernel; batched products around one kernel that scales, masks and normalizes; or a kernel for each operation
    norm : str
        one kernel, or one for each operation; auto: layer normalization is one kernel, RMS normalization is several
    attention_library : str
        library of attention in one kernel; auto: that of the GPU's architecture, which the result tells;
        transformer-engine: cuDNN's on Hopper and Blackwell, FlashAttention elsewhere
    memory_format : str
        of images: channels-last (NHWC), which convolutions on matrix units read as it is, or contiguous (NCHW), which a
        kernel converts for each tensor before and after
    batch_norm : str
        of images: a kernel by itself, as the addition to a residual and ReLU behind it; or joined with them in one, as
        cuDNN's kernels for NHWC and XLA have them
    rotary : str
        rotary positions: one kernel for queries and one for keys, or five kernels each
    activation : str
        of the feed-forward network: one kernel with its bias or its gate, or a kernel for each operation
    residual : str
        bias, dropout and addition to the residual: one kernel, or a kernel for each
    bias : str
        of queries, keys and values: added by the matrix product, or by a kernel of its own
    cross_entropy : str
        over the vocabulary: three kernels and two all-reduces; two kernels and a gather, which leave the gradient in
        place of the logits, as in Transformer Engine; PyTorch's logarithm of the softmax in fp32; the same compiled,
        which reads logits as they are and keeps them; or a kernel for each operation and three all-reduces
    gradients : str
        precision of the buffer that the gradients of all micro-batches are added up in
    gradient_accumulation : str
        the matrix product adds to that buffer, or a kernel of its own does; or one behind the whole backward pass, up
        to which narrower gradients of all layers stay, as in DeepSpeed's optimizer of bf16 weights
    placeholders : str
        memory in place of the gradients of matrices whose product adds to the buffer: none, or as in Transformer Engine
        a tensor for each shape, kept for all layers
    gradient_overlap : str
        backward: a tensor-parallel collective runs beside the matrix product that does not need it, or alone
    expert_products : str
        matrix products of a rank's experts: one kernel for all, or one after the other
    projections : str
        of queries, keys and values, and of the gate and its partner: one product, or a product for each matrix
    products : str
        precision of the blocks' products: that of weights, or a recipe of 8 or 4 bits: torchao's float8, with a scale
        for each tensor or each row (and gradients of weights as-weights: gw-hp), Transformer Engine's fp8 with a scale
        for each tensor (of earlier steps: delayed; or current) or block, mxfp8, nvfp4
    wide_first : int
        blocks at the beginning of the model whose products have the precision of weights nevertheless
    wide_last : int
        such blocks at its end
    gathered_inputs : str
        what tensor-parallel ranks gather for a product is gathered again for its backward pass, or kept
    activation_inputs : str
        what the activation of a feed-forward network reads is kept for its backward pass as it was made, or in fp8, by
        a cast each way, as with Megatron-Core's activation_func_fp8_input_store
    quantized_inputs : str
        what is multiplied by a frozen matrix in 4 bits is given back, as nothing reads it backward, or kept, as
        bitsandbytes had it before 0.43.3
    product_parts : int
        parts of a matrix product for which tensor-parallel ranks gather tokens, or add them up: what travels for one
        part does so beside the products of others; 1: the whole product waits for all
    parts_exchange : str
        what each part has: a collective of its own; or a copy to the next rank of a ring, of as many parts as ranks
    update : str
        of the weights by Adam: one kernel; a kernel for each operation, over all of them (foreach) or over one tensor
        after the other (unfused), which are launched as one; joined: gradients that are narrower than fp32 are joined
        into one tensor, and that is copied to fp32, before one kernel, or (joined-unfused) before a kernel for each
        operation, of which two keep what they make
    recomputed : str
        of a layer that is computed again: the whole, or up to the last tensor that its backward pass needs
    end_norm : str
        the normalization before the head: as those of the blocks; or eager: auto, whatever these have, where blocks
        alone are compiled
    apart : str
        where a schedule has gradients of weights apart, of which matrices: all, or those of the blocks; then the head's
        are part of the backward pass
    captured : str
        launches of blocks: none are captured, each kernel is launched by itself; or layers, a forward or a backward
        pass over a block is a replay of a CUDA graph, captured before the steps, which takes the frontend's
        graph_launch, graph_node and graph_gap
    """

    attention: Literal["flash", "fused-softmax", "unfused"] = "flash"
    norm: Literal["auto", "fused", "unfused"] = "auto"
    attention_library: Literal[
        "auto",
        "flash-attention",
        "flash-attention-2",
        "flash-attention-triton",
        "cudnn",
        "tensorrt-llm",
        "transformer-engine",
    ] = "auto"
    memory_format: Literal["channels-last", "contiguous"] = "channels-last"
    batch_norm: Literal["alone", "joined"] = "alone"
    rotary: Literal["fused", "unfused"] = "unfused"
    activation: Literal["fused", "unfused"] = "unfused"
    residual: Literal["fused", "unfused"] = "unfused"
    bias: Literal["fused", "unfused"] = "fused"
    cross_entropy: Literal["fused", "in-place", "log-softmax", "compiled", "unfused"] = "unfused"
    gradients: Literal["as-weights", "fp32"] = "as-weights"
    gradient_accumulation: Literal["fused", "unfused", "behind"] = "unfused"
    placeholders: Literal["none", "by-shape"] = "none"
    gradient_overlap: Literal["beside", "alone"] = "beside"
    expert_products: Literal["together", "each"] = "together"
    projections: Literal["joined", "separate"] = "joined"
    products: ProductPrecision = "as-weights"
    wide_first: int = 0
    wide_last: int = 0
    gathered_inputs: Literal["again", "kept"] = "again"
    activation_inputs: Literal["as-made", "fp8"] = "as-made"
    quantized_inputs: Literal["released", "kept"] = "released"
    product_parts: int = 1
    parts_exchange: Literal["collective", "ring"] = "collective"
    update: Literal["fused", "foreach", "unfused", "joined", "joined-unfused"] = "fused"
    recomputed: Literal["whole", "needed"] = "whole"
    end_norm: Literal["as-blocks", "eager"] = "as-blocks"
    apart: Literal["all", "blocks"] = "all"
    captured: Literal["none", "layers"] = "none"

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

    def without_effect(self) -> Iterator[Problem]:
        """Choices without effect on a model that runs whole on each GPU."""
        for one in fields(self):
            if one.name not in _EVERYWHERE and (value := getattr(self, one.name)) != one.default:
                message = "has no effect on a model that runs whole on each GPU"
                yield Problem(message, key=one.name, value=str(value), expected=f"{one.name} = {one.default}")
