"""CUDA graphs of a job of Megatron-LM or NeMo: layers that are captured as a whole, and what is not simulated."""

from __future__ import annotations

from simperf.frameworks.draft import JobDraft
from simperf.frameworks.options import JobOptionsRead

__all__ = ["draft_graphs"]

#: what captures graphs, each with what it is when it does not
_SWITCHES = {"cuda_graph_impl": "none", "enable_cuda_graph": False, "external_cuda_graph": False}
#: implementations, and whether they capture layer by layer
_BY_LAYER = {"none": False, "local": True, "transformer_engine": True, "full_iteration": False}
#: parts of a layer that are its whole, by whether it has experts
_WHOLE = {False: ({"full"}, {"attn", "mlp"}), True: ({"full"}, {"attn", "moe"}, {"attn", "mlp", "moe"})}


def draft_graphs(options: JobOptionsRead, draft: JobDraft) -> None:
    """Draft the capture of layers, or note why it is not simulated.

    Parameters
    ----------
    options : JobOptionsRead
        By their names in Megatron-Core.
    draft : JobDraft
        With its layout, its recomputation and its routing.
    """
    by_layer = options.choice("cuda_graph_impl", _BY_LAYER, False)
    name = next((one for one, off in _SWITCHES.items() if options[one] != off), "")
    if not name:
        if "cuda_graph_scope" in options:
            message = f"has no effect: {options.argument('cuda_graph_impl')} is none"
            options.notes.append(f"{options.argument('cuda_graph_scope')}: {message}")
        return
    why, scope, experts = "", set(map(str, options["cuda_graph_scope"])), bool(options["num_moe_experts"])
    program = draft.tables["program"]
    if name == "cuda_graph_impl" and not by_layer:
        why = "a whole iteration is captured"
    elif scope and scope not in _WHOLE[experts]:
        why = f"{', '.join(sorted(scope))[:100]} is captured, not a whole layer"
    elif experts and not program.get("pad_experts"):
        why = "experts take any number of rows, for which the host waits"
    elif program.get("recompute", "none") != "none":
        why = "layers are computed again"
    elif draft.tables["layout"].get("sharding") == "zero-3":
        why = "weights are gathered layer by layer"
    if why:
        options.notes.append(f"{options.argument(name)}: not simulated, each kernel is launched by itself: {why}")
    else:
        draft.set("program", "captured", "layers", name)
