"""Tracing of real torch models. Torch is imported when something is traced, not before."""

from simperf.workload.trace.loss import LOSSES
from simperf.workload.trace.target import load_target, parse_input, require_torch
from simperf.workload.trace.tracer import trace_model

__all__ = ["LOSSES", "load_target", "parse_input", "require_torch", "trace_model"]
