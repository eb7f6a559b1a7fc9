"""Workloads: operations with their FLOPs and bytes, and graphs of them."""

from typing import TYPE_CHECKING

from simperf.public_names import public_names

if TYPE_CHECKING:
    from simperf.workload.builders import chain, cos_cos, mlp, product_plus_two
    from simperf.workload.fusion import fuse
    from simperf.workload.graph import LongestChain, OpGraph
    from simperf.workload.op import FAMILIES, MATRIX_FAMILIES, Gemm, Op
    from simperf.workload.precision import PRECISIONS, element_size
    from simperf.workload.registry import OP_KINDS, make_op, op_parameters
    from simperf.workload.transformers.forward import decoder
else:
    __getattr__, __dir__ = public_names(
        __name__,
        {
            "builders": ("chain", "cos_cos", "mlp", "product_plus_two"),
            "transformers.forward": ("decoder",),
            "fusion": ("fuse",),
            "graph": ("LongestChain", "OpGraph"),
            "op": ("FAMILIES", "MATRIX_FAMILIES", "Gemm", "Op"),
            "precision": ("PRECISIONS", "element_size"),
            "registry": ("OP_KINDS", "make_op", "op_parameters"),
        },
    )

__all__ = [
    "FAMILIES",
    "MATRIX_FAMILIES",
    "OP_KINDS",
    "PRECISIONS",
    "Gemm",
    "LongestChain",
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
