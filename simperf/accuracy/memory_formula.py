"""Memory of a rank by the usual formula, beside which predictions of it stand: states over shards, and activations.

A planner adds up on paper: weights, gradients and Adam's states (S. Rajbhandari and others, "ZeRO: Memory Optimizations
Toward Training Trillion Parameter Models", SC 2020, section 3), each over the ranks that share them; and behind them
the activations of the micro-batches that a stage holds under 1F1B,

    s b h (34 or 2) bytes a layer, divided by tensor-parallel ranks,

2 where layers are recomputed and 34 where not (V. Korthikanti and others, "Reducing Activation Recomputation in Large
Transformer Models", MLSys 2023, sections 4 and 5), without the scores of attention, which fused kernels do not keep.
Without a pipeline the logits are added, 4 s b (h + v) bytes. It knows of no allocator, no buffer and no expert's
activations.
"""

from __future__ import annotations

from simperf.accuracy.large_cases import LargeCase

__all__ = ["formula_memory"]

#: of a number in half precision, and in fp32 [B]
_HALF, _WHOLE = 2.0, 4.0
#: activations of a layer over s b h: kept, and where the layer is computed again [B]
_KEPT, _AGAIN = 34.0, 2.0


def formula_memory(case: LargeCase, stage: int = 0) -> float:
    """Memory of a rank of a stage [B].

    Parameters
    ----------
    case : LargeCase
        With or without what was measured; a counter of activations has no states.
    stage : int
        Of its pipeline; the first holds most.
    """
    counter = case.memory.counter if case.memory is not None else "allocated"
    return _activations(case, stage) + (0.0 if counter == "activations" else _states(case))


def _states(case: LargeCase) -> float:
    """Weights, gradients and optimizer states of a rank, by how each is shared [B]."""
    model, how, layout = case.model, case.layout, case.layout.layout
    idle = model.experts - model.experts_per_token
    spread = (model.parameters - model.active_parameters) * model.experts / idle if idle > 0 else 0.0
    held = (model.parameters - spread) / (layout.tp * layout.pp) + spread / (
        layout.ep * (layout.etp or layout.tp) * layout.pp
    )
    weights = _WHOLE if how.precision == "fp32" else _HALF
    if how.adapters.rank:
        gradients = states = 0.0
    else:
        gradients = _WHOLE if how.gradients == "fp32" else weights
        states = 2 * weights if how.pure else 2 * _WHOLE + (_WHOLE if weights == _HALF else 0.0)
    ranks = layout.dp * layout.cp / layout.dp_replicate
    shared = {"none": 0, "zero-1": 1, "zero-2": 2, "zero-3": 3}[layout.sharding]
    parts = (states, gradients, weights)
    return held * sum(part / (ranks if index < shared else 1.0) for index, part in enumerate(parts))


def _activations(case: LargeCase, stage: int) -> float:
    """Activations of the micro-batches that a stage holds under 1F1B [B]."""
    model, how, layout = case.model, case.layout, case.layout.layout
    tokens = model.sequence * how.microbatch / layout.cp
    layers = model.layers / layout.pp * min(layout.pp - stage, how.microbatches)
    # tensor-parallel ranks that do not share tokens keep the inputs of recomputed layers whole
    kept = _AGAIN / (layout.tp if how.sequence_parallel else 1) if how.recompute == "full" else _KEPT / layout.tp
    logits = 4.0 * tokens * (model.hidden + model.vocabulary) / layout.tp if layout.pp == 1 else 0.0
    return tokens * model.hidden * layers * kept + logits
