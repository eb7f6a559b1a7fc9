"""Jobs of torchtitan: its TOML files."""

from __future__ import annotations

import re
from collections.abc import Mapping

from simperf.files import dotted, read_toml
from simperf.frameworks.draft import JobDraft
from simperf.frameworks.machines import ASSUMED, draft_machine, server_gpus
from simperf.frameworks.options import GivenOption, JobOptionsRead
from simperf.frameworks.source import JobSource, leaves
from simperf.schedules import SCHEDULES
from simperf.workload.transformers.shipped import shipped_transformers

__all__ = ["draft_torchtitan", "torchtitan_options"]

#: model and flavour -> model of the zoo; torchtitan predicts no further tokens
_MODELS: Mapping[tuple[str, str], str] = {
    ("llama3", "1B"): "llama3.2-1b",
    ("llama3", "3B"): "llama3.2-3b",
    ("llama3", "8B"): "llama3-8b",
    ("llama3", "70B"): "llama3-70b",
    ("llama3", "405B"): "llama3-405b",
    ("deepseek_v3", "671B"): "deepseek-v3",
    ("qwen3", "32B"): "qwen3-32b",
    ("qwen3", "30B-A3B"): "qwen3-30b-a3b",
    ("qwen3", "235B-A22B"): "qwen3-235b-a22b",
}
_SIZES = {"tp": "tp", "cp": "cp", "pp": "pp", "ep": "ep"}
_COMPILED = "torch-fsdp2-compiled-2025"
#: gradients of replicas without sharding travel in buckets of this size
_BUCKET = "100 MiB"
_RECIPES = {"tensorwise": "float8", "rowwise": "float8-rowwise", "rowwise_with_gw_hp": "float8-rowwise-gw-hp"}
_RESHARD = {"default": "auto", "always": "always", "never": "never"}
_ROTATIONS = {"allgather": "all-gather", "alltoall": "ring"}
_UPDATES = {"fused": "fused", "foreach": "foreach", "for-loop": "unfused"}
_WEIGHTS = {"bfloat16": "bf16-master", "float32": "fp32"}
#: schedule -> that of simperf, and parts of the model on a stage
_SCHEDULES = {
    "1f1b": ("1f1b", 1),
    "gpipe": ("gpipe", 1),
    "interleaved1f1b": ("interleaved", 2),
    "zbvzerobubble": ("zb-v", 2),
}


def torchtitan_options(source: JobSource) -> tuple[list[GivenOption], list[str]]:
    """Options of a TOML file of torchtitan."""
    toml = read_toml(source.path)
    return [GivenOption(dotted(key), (), value, toml.line(key)) for key, value in leaves(toml.data)], []


def draft_torchtitan(options: JobOptionsRead, draft: JobDraft, *, gpus: int, on: str) -> None:
    """Draft the tables of a job of torchtitan; the parameters are those of `draft_megatron`."""
    draft.tables["frontend"] = {"use": "pytorch"}
    layers = _model(options, draft)
    program = draft.tables.setdefault("program", {})
    program |= {"use": "train", "strategy": "model-parallel"}
    compiled = options["compile"] and "model" in options["compiled"]
    why = "assumed: torchtitan of the middle of 2025" if compiled else "assumed: torchtitan of the end of 2024"
    draft.set("program", "stack", _COMPILED if compiled else options.table.stack, "compile", why=why)
    draft.set("program", "precision", options.choice("weights", _WEIGHTS, "bf16-master"), "weights")
    if draft.tables["program"]["precision"] == "fp32":
        draft.set("program", "attention_library", "auto", why="FlashAttention has no kernels in fp32")
    if not _layout(options, draft, gpus=gpus, on=on):
        return
    chunks = _schedule(options, draft, layers)
    _batch(options, draft)
    _recompute(options, draft, layers // max(1, options["pp"] * chunks))
    _exchange(options, draft, compiled=compiled)
    _products(options, draft)
    options.note_optimizer()
    update = "fused" if options["fused_update"] else "foreach"
    if "fused_update" not in options:
        update = options.choice("update", _UPDATES, "fused")
    draft.set("program", "update_kernels", update, "fused_update" if "fused_update" in options else "update")
    draft.set("program", "steps", 2, why="of which the second is reported")


def _model(options: JobOptionsRead, draft: JobDraft) -> int:
    """Draft ``[model]``; returns its layers."""
    flavor = str(options["flavor"])
    name = _MODELS.get((str(options["model"]), flavor), "")
    name = str(draft.value("model.name", name))
    if not name and not draft.is_changed("model.layers") and not draft.is_changed("model.config"):
        known = ", ".join(f"{model} {size}" for model, size in _MODELS)
        expected = f"one of {known}; or --set model.name=NAME of `simperf zoo list`"
        message = f"no dimensions are known of model {options['model']!r} in this flavour"
        options.problems.append(options.problem("flavor", message, expected=expected))
        return 0
    if name:
        draft.set("model", "name", name, "flavor")
    draft.set("model", "sequence", options["sequence"], "sequence")
    found = shipped_transformers().get(name)
    return found.layers if found is not None else int(draft.value("model.layers", 0) or 0)


def _layout(options: JobOptionsRead, draft: JobDraft, *, gpus: int, on: str) -> bool:
    """Draft ``[layout]`` and ``[machine]``; whether there is one."""
    sizes = {key: options[name] for key, name in _SIZES.items()}
    replicate, shard = options["replicate"], options["shard"]
    wrong = [name for name in (*_SIZES.values(), "replicate") if options[name] < 1]
    if shard < 1 and shard != -1:
        wrong.append("shard")
    if wrong:
        message = "a number of ranks is expected"
        options.problems += [options.problem(one, message, expected="1 or more") for one in wrong]
        return False
    why = ""
    inside = sizes["tp"] * sizes["cp"] * sizes["pp"] * replicate
    world = gpus or (inside * shard if shard > 0 else 0)
    if not world:
        each = server_gpus(on or ASSUMED) or inside
        world = -(-inside // each) * each
        why = f"assumed: {world} GPUs, whole servers; --gpus N says otherwise"
    shards = shard if shard > 0 else world // inside
    if inside * shards != world:
        message = f"{world} GPUs are not the product of all degrees, {inside} x {shards}"
        expected = f"--gpus {inside * shards}" if shard > 0 else f"a multiple of {inside} GPUs"
        options.problems.append(options.problem("shard", message, expected=expected))
        return False
    for key, name in _SIZES.items():
        if sizes[key] > 1:
            draft.set("layout", key, sizes[key], name)
    told = why or f"{world} GPUs / {world // (replicate * shards)}"
    draft.set("layout", "dp", replicate * shards, "shard", why=told)
    if sizes["ep"] > 1:
        draft.set("layout", "etp", options["etp"], "etp")
    if shards * sizes["cp"] > 1:
        why = "fully_shard over data-parallel and context-parallel ranks"
        draft.set("layout", "sharding", "zero-3", "shard", why=why)
        if replicate > 1:
            draft.set("layout", "dp_replicate", replicate, "replicate")
    elif replicate > 1:
        draft.set("program", "gradient_bucket", _BUCKET, "replicate", why="buckets of replicas without sharding")
    draft_machine(draft, world, on)
    return True


def _batch(options: JobOptionsRead, draft: JobDraft) -> None:
    """Samples of a step and of a micro-batch."""
    local, dp = options["local_batch"], draft.tables["layout"]["dp"]
    each, name = local, "local_batch"
    if options["pp"] > 1:
        name = "microbatch"
        each = options["microbatch"]
        if "microbatches" in options:
            name, count = "microbatches", options["microbatches"]
            each = local // count if count > 0 and local % count == 0 else 0
    if local < 1 or each < 1 or local % each:
        message = f"{options.argument('local_batch')} {local} is no multiple of it"
        options.problems.append(options.problem(name, message, expected=f"a divisor of {local}"))
        return
    draft.set("program", "microbatch", each, name)
    whole = options["global_batch"]
    if whole < 0:
        why = "default: a local batch of each data-parallel rank"
        draft.set("program", "batch", local * dp, "local_batch", why=why)
        return
    draft.set("program", "batch", whole, "global_batch")
    if whole < 1 or whole % (local * dp):
        message = f"no multiple of {options.argument('local_batch')} {local} x {dp} data-parallel ranks"
        options.problems.append(options.problem("global_batch", message, expected=f"a multiple of {local * dp}"))
    elif options["pp"] > 1 and whole > local * dp:
        draft.set(
            "program", "pipeline_runs", whole // (local * dp), "global_batch", why="each fills the pipeline again"
        )


def _schedule(options: JobOptionsRead, draft: JobDraft, layers: int) -> int:
    """Draft the pipeline; returns the parts of the model on each stage."""
    stages = options["pp"]
    if stages == 1:
        return 1
    plain = str(options["schedule"]).lower()
    if plain not in _SCHEDULES:
        expected = ", ".join(("1F1B", "GPipe", "Interleaved1F1B", "ZBVZeroBubble"))
        options.problems.append(options.problem("schedule", "is not simulated", expected=expected))
        return 1
    name, chunks = _SCHEDULES[plain]
    assert name in SCHEDULES
    first, last = options["first_less"], options["last_less"]
    for option in ("first_less", "last_less"):
        if not 0 <= options[option] <= layers:
            options.problems.append(options.problem(option, f"{layers} layers are divided", expected=f"0 to {layers}"))
            return chunks
    counts = _split(options, layers)
    each = options["part_layers"]
    if each is not None and each < 0:
        options.problems.append(options.problem("part_layers", "a number of layers is expected", expected="1 or more"))
        return chunks
    if not counts and each:
        whole = layers + first + last
        if not _parts_taken(name, -(-whole // each), stages):
            taken = [one for one in range(1, whole + 1) if _parts_taken(name, -(-whole // one), stages)]
            message = f"{whole} layers, with embedding and head, make {-(-whole // each)} parts"
            message += f", which {stages} stages of {options['schedule']} do not take"
            expected = " or ".join(map(str, taken[-3:])) or "another number of stages"
            options.problems.append(options.problem("part_layers", message, expected=expected))
            return chunks
        chunks = -(-whole // each) // stages
    if counts and name == "interleaved":
        chunks = len(counts) // stages
    parts = stages * chunks
    if counts and len(counts) != parts:
        message = f"{len(counts)} parts for {stages} stages of {chunks}"
        options.problems.append(options.problem("split_points", message, expected=f"{parts - 1} points"))
        return chunks
    draft.set("program", "schedule", name, "schedule")
    if name == "interleaved":
        draft.set("program", "chunks", chunks, "part_layers" if "part_layers" in options else "schedule")
    if not counts:
        whole = layers + first + last
        counts = [whole // parts + (index < whole % parts) for index in range(parts)]
        counts[0] -= first
        counts[-1] -= last
    if len(set(counts)) > 1:
        why = "" if "split_points" in options else "embedding and head count as layers"
        draft.set("program", "stage_layers", counts, "split_points", why=why)
    return chunks


def _parts_taken(schedule: str, parts: int, stages: int) -> bool:
    """Whether a schedule's stages have as many parts each, at least two of interleaved ones and else so many."""
    each, rest = divmod(parts, stages)
    usual = dict(_SCHEDULES.values())[schedule]
    return not rest and (each >= usual if schedule == "interleaved" else each == usual)


def _split(options: JobOptionsRead, layers: int) -> list[int]:
    """Layers of each part by split points; none without them."""
    points = []
    for one in options["split_points"]:
        found = re.fullmatch(r"layers\.(\d{1,5})", one)
        if not found:
            options.problems.append(options.problem("split_points", "is not simulated", expected="layers.N, ..."))
            return []
        points.append(int(found.group(1)))
    if not points:
        return []
    ends = [*points, layers]
    counts = [end - begin for begin, end in zip([0, *points], ends, strict=True)]
    if min(counts) < 0:
        options.problems.append(options.problem("split_points", "do not rise", expected=f"below {layers}, rising"))
        return []
    return counts


def _recompute(options: JobOptionsRead, draft: JobDraft, layers: int) -> None:
    """What the backward pass computes again; `layers` are those of a part."""
    modes = {"none": "none", "full": "full", "selective": "selective"}
    mode = options.choice("recompute", modes, "none")
    if mode != "selective":
        draft.set("program", "recompute", mode, "recompute")
        return
    kind = str(options["selective"])
    if kind == "op":
        draft.set("program", "recompute", "selective-op", "selective")
    elif kind.isdigit() and len(kind) < 6 and int(kind) > 0:
        draft.set("program", "recompute", "full", "selective", why="" if kind == "1" else f"each layer of {kind}")
        if int(kind) > 1 and layers:
            why = f"one layer in {kind}; here the first ones of each part"
            draft.set("program", "recompute_layers", max(1, layers // int(kind)), "selective", why=why)
    else:
        options.problems.append(options.problem("selective", "is not simulated", expected="op, or a number of layers"))


def _exchange(options: JobOptionsRead, draft: JobDraft, *, compiled: bool) -> None:
    """What ranks send each other."""
    if draft.tables["layout"].get("sharding") == "zero-3" and "reshard" in options:
        draft.set("program", "reshard_weights", options.choice("reshard", _RESHARD, "auto"), "reshard")
    if options["tp"] > 1:
        draft.set("program", "sequence_parallel", True, "tp", why="as torchtitan has it with tensor parallelism")
        if options["async_tp"] and compiled:
            draft.set("program", "product_parts", options["tp"], "async_tp")
            draft.set("program", "parts_exchange", "ring", "async_tp")
        elif options["async_tp"]:
            message, expected = "has no effect: the model is not compiled", "compile.enable = true"
            options.problems.append(options.problem("async_tp", message, expected=expected))
    if options["cp"] > 1:
        why = "blocks of keys and values are exchanged rank by rank" if options["rotate"] == "alltoall" else ""
        draft.set("program", "context_exchange", options.choice("rotate", _ROTATIONS, "ring"), "rotate", why=why)


def _products(options: JobOptionsRead, draft: JobDraft) -> None:
    """Products in 8 bits."""
    named = [one.rpartition(".")[2] for one in options["converters"]]
    if "mx" in named:
        draft.set("program", "product_precision", "mxfp8", "converters")
    elif "float8" in named:
        recipe = options.choice("float8_recipe", _RECIPES, "float8")
        draft.set("program", "product_precision", recipe, "converters")
        sharded = draft.tables["layout"].get("sharding", "none") != "none"
        if options["float8_gather"] and recipe == "float8" and sharded:
            draft.set("program", "gathered_precision", "fp8", "float8_gather")
    odd = [one for one in options["converters"] if one.rpartition(".")[2] not in ("mx", "float8")]
    if odd:
        options.notes.append(f"{options.argument('converters')}: not understood: {', '.join(odd)[:100]}")
