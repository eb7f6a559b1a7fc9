"""The ranks, machine and pipeline of a job of Megatron-LM."""

from __future__ import annotations

from simperf.frameworks.draft import JobDraft
from simperf.frameworks.machines import draft_machine
from simperf.frameworks.options import JobOptionsRead

__all__ = ["draft_layout", "draft_pipeline"]

_SIZES = {
    "tp": "tensor_model_parallel_size",
    "cp": "context_parallel_size",
    "pp": "pipeline_model_parallel_size",
    "ep": "expert_model_parallel_size",
}
_SHARDINGS = {"no_shard": "none", "optim": "zero-1", "optim_grads": "zero-2", "optim_grads_params": "zero-3"}


def draft_layout(options: JobOptionsRead, draft: JobDraft, *, gpus: int, on: str) -> None:
    """Draft ``[layout]`` and ``[machine]``.

    Parameters
    ----------
    options : JobOptionsRead
    draft : JobDraft
    gpus : int
        Of the job; 0 for what the options say.
    on : str
        Server or cluster; empty for the one that is assumed.
    """
    sizes = {key: options[name] for key, name in _SIZES.items()}
    wrong = [name for key, name in _SIZES.items() if sizes[key] < 1]
    if wrong:
        message = "a number of ranks is expected"
        options.problems += [options.problem(one, message, expected="1 or more") for one in wrong]
        return
    inside = sizes["tp"] * sizes["cp"] * sizes["pp"]
    world, named = gpus, "--gpus"
    if not world and "nproc_per_node" in options:
        world = options["nproc_per_node"] * (options["nnodes"] or 1)
        named = f"{options.argument('nproc_per_node')} x {options.argument('nnodes')}"
    why = ""
    if not world:
        spread = sizes["ep"] * (options["expert_tensor_parallel_size"] or sizes["tp"])
        world = inside * max(1, -(-spread // (sizes["tp"] * sizes["cp"])))
        why = f"assumed: {world} GPUs, the fewest that the options take; --gpus N says otherwise"
    if world < 1 or world % inside:
        name = "nproc_per_node" if "nproc_per_node" in options and not gpus else "tensor_model_parallel_size"
        message = f"{world} GPUs ({named}) are no multiple of tp x cp x pp = {inside}"
        options.problems.append(options.problem(name, message, expected=f"a multiple of {inside} GPUs"))
        return
    for key, name in _SIZES.items():
        if sizes[key] > 1:
            draft.set("layout", key, sizes[key], name)
    dp = world // inside
    draft.set("layout", "dp", dp, *(() if gpus else ("nproc_per_node",)), why=why or f"{world} GPUs / {inside}")
    if "expert_tensor_parallel_size" in options and options["num_moe_experts"]:
        draft.set("layout", "etp", options["expert_tensor_parallel_size"], "expert_tensor_parallel_size")
    if options["use_tp_pp_dp_mapping"]:
        draft.set("layout", "order", "tp-cp-ep-pp-dp", "use_tp_pp_dp_mapping")
    _sharding(options, draft, alone=dp * sizes["cp"] == 1)
    draft_machine(draft, world, on)


def _sharding(options: JobOptionsRead, draft: JobDraft, *, alone: bool) -> None:
    """What data-parallel ranks keep a part of."""
    name, sharding = "use_distributed_optimizer", "zero-1" if options["use_distributed_optimizer"] else "none"
    if options["use_torch_fsdp2"]:
        name, sharding = "use_torch_fsdp2", "zero-3"
    elif options["use_megatron_fsdp"]:
        name = "data_parallel_sharding_strategy"
        sharding = options.choice(name, _SHARDINGS, "none")
    if sharding == "none":
        return
    if alone:
        draft.comments["layout", "dp"] = f"{draft.comments.get(('layout', 'dp'), '')}; one rank has nothing to share"
        return
    draft.set("layout", "sharding", sharding, name)
    copies = options["num_distributed_optimizer_instances"]
    if copies > 1:
        draft.set("layout", "dp_replicate", copies, "num_distributed_optimizer_instances")


def draft_pipeline(options: JobOptionsRead, draft: JobDraft) -> None:
    """Draft the schedule, and the layers of each stage."""
    stages, layers = options["pipeline_model_parallel_size"], options["num_layers"] or 0
    if stages < 1:  # the layout's ranks say so
        return
    chunks = _chunks(options, stages, layers)
    if chunks > 1:
        name = "num_layers_per_virtual_pipeline_stage"
        name = name if name in options else "num_virtual_stages_per_pipeline_rank"
        draft.set("program", "schedule", "interleaved", name)
        draft.set("program", "chunks", chunks, name)
        if options["overlap_p2p_comm"]:
            draft.set("program", "overlap_messages", True, "overlap_p2p_comm")
    elif stages > 1:
        why = "default without virtual stages"
        draft.set("program", "schedule", "1f1b", "pipeline_model_parallel_size", why=why)
    if stages > 1:
        _stage_layers(options, draft, stages * chunks, stages)


def _chunks(options: JobOptionsRead, stages: int, layers: int) -> int:
    """Parts of the model on each stage."""
    both = ("num_layers_per_virtual_pipeline_stage", "num_virtual_stages_per_pipeline_rank")
    if all(name in options for name in both):
        message = f"contradicts {options.argument(both[1])}"
        options.problems.append(options.problem(both[0], message, expected="one of them"))
    if both[1] in options:
        if options[both[1]] < 1:
            options.problems.append(options.problem(both[1], "is no number of parts", expected="1 or more"))
        return max(1, int(options[both[1]]))
    each = options[both[0]]
    if each is None:
        return 1
    if each < 1 or layers % (stages * each):
        message = f"{layers} layers on {stages} stages are no multiple of it"
        options.problems.append(options.problem(both[0], message, expected=f"a divisor of {layers // max(1, stages)}"))
        return 1
    return int(layers // (stages * each))


def _stage_layers(options: JobOptionsRead, draft: JobDraft, parts: int, stages: int) -> None:
    """Layers of each part, where they are not even."""
    first, last = "num_layers_in_first_pipeline_stage", "num_layers_in_last_pipeline_stage"
    layers = options["num_layers"] or 0
    ends = {name: options[name] for name in (first, last) if name in options}
    accounted = [
        name
        for name in ("account_for_embedding_in_pipeline_split", "account_for_loss_in_pipeline_split")
        if options[name]
    ]
    if ends and accounted:
        message = f"contradicts {options.argument(accounted[0])}"
        options.problems.append(options.problem(next(iter(ends)), message, expected="one of them"))
        return
    if accounted:
        whole = layers + len(accounted)
        if whole % parts:
            message = f"{whole} layers, embedding and loss counted, do not divide into {parts} parts"
            options.problems.append(options.problem("num_layers", message, expected=f"a multiple of {parts} in all"))
            return
        counts = [whole // parts] * parts
        counts[0] -= "account_for_embedding_in_pipeline_split" in accounted
        counts[-1] -= "account_for_loss_in_pipeline_split" in accounted
        draft.set("program", "stage_layers", counts, accounted[0])
    elif ends:
        chunks, middle = parts // stages, stages - len(ends)
        rest = layers - sum(ends.values())
        if rest < 0 or (middle and rest % (middle * chunks)) or any(count % chunks for count in ends.values()):
            message = f"{layers} layers do not divide among {stages} stages of {chunks} parts with it"
            options.problems.append(options.problem(next(iter(ends)), message, expected="stages of equal parts"))
            return
        each = rest // middle if middle else 0
        by_stage = [each] * stages
        by_stage[0], by_stage[-1] = ends.get(first, each), ends.get(last, each)
        draft.set("program", "stage_layers", [count // chunks for count in by_stage] * chunks, next(iter(ends)))
