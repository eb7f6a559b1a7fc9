"""Operation types: each derives FLOPs and bytes from shapes.

Conventions, the same for all:

- A multiply-add is 2 FLOP. Additions, multiplications and comparisons are 1, divisions and square
  roots 4, exponentials and trigonometric functions 8: the weights of the Livermore loops
  (F. H. McMahon, UCRL-53745, Lawrence Livermore National Laboratory, 1986).
- Bytes are compulsory traffic: each operand is read from device memory once and each result
  written once, as if whatever a kernel needs twice stayed on chip.
"""

from simperf.workload.kinds.attention import attention, latent_attention
from simperf.workload.kinds.dense import bmm, conv2d, linear, matmul
from simperf.workload.kinds.experts import moe
from simperf.workload.kinds.memory import copy, custom, embedding, fill
from simperf.workload.kinds.pointwise import BINARY_FLOPS, UNARY_FLOPS, binary, dropout, elementwise, unary
from simperf.workload.kinds.rows import batchnorm, cross_entropy, layernorm, pool2d, reduction, softmax
from simperf.workload.kinds.scaling import amax, block_scaled_matmul, quantize, scaled_product
from simperf.workload.kinds.update import adam, sgd

__all__ = [
    "BINARY_FLOPS",
    "UNARY_FLOPS",
    "adam",
    "amax",
    "attention",
    "batchnorm",
    "binary",
    "block_scaled_matmul",
    "bmm",
    "conv2d",
    "copy",
    "cross_entropy",
    "custom",
    "dropout",
    "elementwise",
    "embedding",
    "fill",
    "latent_attention",
    "layernorm",
    "linear",
    "matmul",
    "moe",
    "pool2d",
    "quantize",
    "reduction",
    "scaled_product",
    "sgd",
    "softmax",
    "unary",
]
