"""Transformers by their dimensions: weights, configurations of Hugging Face, operations."""

from simperf.workload.transformers.dimensions import ACTIVATIONS, NORMS, POSITIONS, Transformer, Weight
from simperf.workload.transformers.forward import decoder
from simperf.workload.transformers.hugging_face import MODEL_TYPES, from_config, read_config

__all__ = [
    "ACTIVATIONS",
    "MODEL_TYPES",
    "NORMS",
    "POSITIONS",
    "Transformer",
    "Weight",
    "decoder",
    "from_config",
    "read_config",
]
