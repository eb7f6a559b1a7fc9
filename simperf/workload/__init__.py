"""What is computed: operations with their FLOPs and bytes, and graphs of them."""

from simperf.workload.builders import chain, cos_cos, mlp, product_plus_two
from simperf.workload.fusion import fuse
from simperf.workload.graph import CriticalPath, OpGraph
from simperf.workload.op import FAMILIES, MATRIX_FAMILIES, Gemm, Op
from simperf.workload.precision import PRECISIONS, element_size
from simperf.workload.registry import OP_KINDS, make_op, op_parameters
from simperf.workload.transformers.forward import decoder

__all__ = [
    "FAMILIES",
    "MATRIX_FAMILIES",
    "OP_KINDS",
    "PRECISIONS",
    "CriticalPath",
    "Gemm",
    "Op",
    "OpGraph",
    "chain",
    "cos_cos",
    "decoder",
    "element_size",
    "fuse",
    "make_op",
    "mlp",
    "op_parameters",
    "product_plus_two",
]
