"""Jobs of DeepSpeed: its JSON configuration; the model's dimensions come from elsewhere."""

from __future__ import annotations

from simperf.errors import InputError, Problem
from simperf.frameworks.draft import JobDraft
from simperf.frameworks.machines import ASSUMED, draft_machine, server_gpus
from simperf.frameworks.options import GivenOption, JobOptionsRead
from simperf.frameworks.source import JobSource, leaves
from simperf.json_file import read_json
from simperf.workload.transformers.shipped import shipped_transformers

__all__ = ["deepspeed_options", "draft_deepspeed"]

_AUTO = "auto"
_SHARDINGS = {0: "none", 1: "zero-1", 2: "zero-2", 3: "zero-3"}
_OFFLOADS = {"none": "gpu", "None": "gpu", "cpu": "host"}


def deepspeed_options(source: JobSource) -> tuple[list[GivenOption], list[str]]:
    """Options of a JSON configuration; what is ``"auto"`` is not given."""
    expected = "the JSON configuration of DeepSpeed"
    file = read_json(source.path, what="not a configuration of DeepSpeed", expected=expected)
    if not isinstance(file.data, dict):
        raise InputError(Problem("not a configuration of DeepSpeed", file=source.path, expected=expected))
    given, notes = [], []
    for key, value in leaves(file.data):
        name = ".".join(map(str, key))
        if value == _AUTO:
            notes.append(f"{name}: auto: not printed")
        elif value is not None:
            given.append(GivenOption(name, (), value, file.line(key)))
    return given, notes


def draft_deepspeed(options: JobOptionsRead, draft: JobDraft, *, gpus: int, on: str) -> None:
    """Draft the tables of a job of DeepSpeed; the parameters are those of `draft_megatron`."""
    draft.tables["frontend"] = {"use": "pytorch"}
    named = any(draft.is_changed(f"model.{key}") for key in ("name", "layers", "config"))
    if "model" not in draft.tables and not named:
        message = "the configuration has no model"
        expected = "--model NAME of `simperf zoo list`, or --model config.json"
        options.problems.append(Problem(message, file=options.file, key="model", expected=expected))
    _sequence(options, draft)
    program = draft.tables.setdefault("program", {})
    program |= {"use": "train", "strategy": "model-parallel", "stack": options.table.stack}
    draft.comments["program", "stack"] = "assumed: kernels of eager PyTorch, as of 2024"
    stage = options["stage"]
    _precision(options, draft, stage)
    if stage not in _SHARDINGS:
        options.problems.append(options.problem("stage", "no such stage", expected="0, 1, 2 or 3"))
        return
    if not _ranks(options, draft, gpus, on):
        return
    _exchange(options, draft, stage)
    why = "not printed: the model's code decides; full computes each layer again"
    draft.set("program", "recompute", "none", why=why)
    options.note_optimizer()
    draft.set("program", "steps", 2, why="of which the second is reported")


def _sequence(options: JobOptionsRead, draft: JobDraft) -> None:
    """Say which sequence is assumed: the configuration has none, and the longest of a model is rarely trained with."""
    table = draft.tables.get("model", {})
    shipped = shipped_transformers().get(str(draft.value("model.name", table.get("name", ""))))
    longest = shipped.sequence if shipped is not None else table.get("sequence")
    if longest is None or draft.is_changed("model.sequence"):
        return
    why = f"assumed: the {longest:,} tokens that the model's file has; --set model.sequence=N gives another length"
    draft.set("model", "sequence", longest, why=why)
    options.notes.append(f"the length of sequences: not in the configuration: {why}")


def _precision(options: JobOptionsRead, draft: JobDraft, stage: int) -> None:
    if options["fp16"] and options["bf16"]:
        message = f"contradicts {options.argument('fp16')}"
        options.problems.append(options.problem("bf16", message, expected="one of them"))
    unknown = "fp16" not in options and "bf16" not in options
    auto = unknown and any("16.enabled: auto" in one for one in options.notes)
    if options["fp16"]:
        draft.set("program", "precision", "fp16-master", "fp16")
    elif options["bf16"] or auto:
        draft.set("program", "precision", "bf16-master", "bf16", why="not printed: assumed" if auto else "")
    else:
        draft.set("program", "precision", "fp32", "bf16", why="neither fp16 nor bf16 is enabled")
        draft.set("program", "attention_library", "auto", why="FlashAttention has no kernels in fp32")
        return
    # deepspeed/runtime/engine.py: get_data_types
    wide = not stage and draft.tables["program"]["precision"] == "bf16-master" and "gradients" not in options
    if options["gradients"] != "fp32" and not wide:
        why = "" if "gradients" in options else "gradients are as wide as weights"
        draft.set("program", "gradient_precision", "as-weights", "gradients", why=why)


def _ranks(options: JobOptionsRead, draft: JobDraft, gpus: int, on: str) -> bool:
    """Draft ``[layout]``, the batch and ``[machine]``; whether they fit together."""
    sizes = {key: options[key] for key in ("tp", "pp")}
    batch, micro, turns = options["batch"], options["microbatch"], options["accumulate"]
    wrong = [
        name
        for name in ("tp", "pp", "batch", "microbatch", "accumulate")
        if options[name] is not None and options[name] < 1
    ]
    if wrong:
        message = "a number of 1 or more is expected"
        options.problems += [options.problem(name, message, expected="1 or more") for name in wrong]
        return False
    inside = sizes["tp"] * sizes["pp"]
    world, why = gpus, ""
    if not world and batch and micro and turns and batch % (micro * turns) == 0:
        world = inside * (batch // (micro * turns))
        why = f"{batch} samples / ({micro} x {turns})"
    if not world:
        each = max(1, server_gpus(on or ASSUMED))
        world = -(-inside // each) * each
        why = f"assumed: {world} GPUs, whole servers; --gpus N says otherwise"
    if world % inside:
        message = f"{world} GPUs are no multiple of {inside} that share a model"
        options.problems.append(options.problem("tp", message, expected=f"a multiple of {inside} GPUs"))
        return False
    dp = world // inside
    for key, size in sizes.items():
        if size > 1:
            draft.set("layout", key, size, key)
    draft.set("layout", "dp", dp, why=why or f"{world} GPUs / {inside}")
    _batch(options, draft, dp)
    draft_machine(draft, world, on)
    return True


def _batch(options: JobOptionsRead, draft: JobDraft, dp: int) -> None:
    """Samples of a step and of a micro-batch: two of three numbers give the third."""
    batch, micro, turns = options["batch"], options["microbatch"], options["accumulate"]
    why = {"batch": "", "microbatch": ""}
    if batch is None and micro is None and not draft.is_changed("program.batch"):
        expected = "train_batch_size or train_micro_batch_size_per_gpu; or --set program.batch=N"
        options.problems.append(options.problem("batch", "is needed", expected=expected))
        return
    if micro is None:
        batch = batch or draft.value("program.batch", 0)
        whole = dp * (turns or 1)
        if batch % whole:
            message = f"no multiple of {dp} data-parallel ranks x {turns or 1} micro-batches"
            options.problems.append(options.problem("batch", message, expected=f"a multiple of {whole}"))
            return
        micro, why["microbatch"] = batch // whole, f"{batch} samples / ({dp} ranks x {turns or 1})"
    if batch is None:
        batch, why["batch"] = micro * dp * (turns or 1), f"{micro} samples x {dp} ranks x {turns or 1} micro-batches"
    if batch % (micro * dp) or (turns is not None and batch != micro * dp * turns):
        message = f"is not {micro} samples x {dp} data-parallel ranks" + (f" x {turns} micro-batches" if turns else "")
        expected = str(micro * dp * turns) if turns else f"a multiple of {micro * dp}"
        options.problems.append(options.problem("batch", message, expected=expected))
    draft.set("program", "batch", batch, "batch", why=why["batch"])
    draft.set("program", "microbatch", micro, "microbatch", why=why["microbatch"])


def _exchange(options: JobOptionsRead, draft: JobDraft, stage: int) -> None:
    """What data-parallel ranks share and send, and what hosts hold."""
    dp = draft.tables["layout"]["dp"]
    if stage > 1 and draft.tables["layout"].get("pp", 1) > 1:
        message = "DeepSpeed's pipeline takes stages 0 and 1"
        options.problems.append(options.problem("stage", message, expected="1"))
        return
    if dp > 1 and stage:
        draft.set("layout", "sharding", _SHARDINGS[stage], "stage")
        shards = options["shards"]
        if 0 < shards < dp and dp % shards == 0:
            draft.set("layout", "dp_replicate", dp // shards, "shards")
        elif 0 < shards < dp:
            message = f"does not divide {dp} data-parallel ranks"
            options.problems.append(options.problem("shards", message, expected=f"a divisor of {dp}"))
    overlap = options["overlap"] if options["overlap"] is not None else stage == 3
    if dp > 1 and stage < 3 and (overlap or stage == 2):
        program = draft.tables["program"]
        fp32 = program["precision"] == "fp32" or (not stage and "gradient_precision" not in program)
        width = 4 if fp32 else 2
        why = f"{options['bucket']} gradients"
        draft.set("program", "gradient_bucket", f"{options['bucket'] * width / 1e6:g} MB", "bucket", why=why)
    if stage == 3 and dp > 1:
        if draft.tables["program"]["precision"] != "fp32":
            # deepspeed/runtime/zero/stage3.py: fp16_partitioned_groups_flat beside fp32_partitioned_groups_flat
            why = "DeepSpeed keeps a narrow part of weights beside that in fp32"
            draft.set("program", "kept_precision", "as-products", why=why)
        draft.set("program", "reshard_weights", "always", why="weights are given back behind each layer")
        draft.set("program", "reduce_gradients", "each", why="gradients are reduced after each micro-batch")
    draft.set("program", "update_kernels", "fused", why="DeepSpeed's FusedAdam")
    draft.set("program", "clip", options["clip"] > 0.0, "clip")
    device = "cpu" if options["states_old"] else str(options["states"])
    if device not in _OFFLOADS or (stage == 3 and _OFFLOADS[device] == "host"):
        options.notes.append(f"{options.argument('states')} {device[:40]}: not simulated: states stay on the GPUs")
    elif _OFFLOADS[device] == "host":
        draft.set("program", "offload_states", "host", "states_old" if options["states_old"] else "states")
