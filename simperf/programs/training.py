"""Training on one GPU and on many.

"Dive into Deep Learning", sections 12.5 and 12.6.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from simperf.errors import InputError, Problem
from simperf.execution import Program
from simperf.execution.session import Session
from simperf.layout import Layout
from simperf.programs.failure_options import FAILURES_PARAMETER, failures_of
from simperf.programs.job_options import JobOptions, Section, set_by_stack, stack_of
from simperf.programs.parameters import Parameter, Unless
from simperf.programs.registry import program
from simperf.programs.rules import deviates, slows
from simperf.training.driver import train as play_job
from simperf.training.job import Devices, Disturbances, Input, Job, SlowLink
from simperf.training.noise import Noise
from simperf.training.offload import Offload
from simperf.training.replica import Dimensions, Layers, Traced, Workload
from simperf.training.stack import Stack
from simperf.training.strategies import (
    DDP,
    TRAINED,
    ByHand,
    DataExchange,
    DataParallel,
    LocalSGD,
    ModelParallel,
    StageMessages,
)
from simperf.workload.layer_kernels import LayerKernels
from simperf.workload.mixed import TRAINING_PRECISIONS
from simperf.workload.routing import Routing
from simperf.workload.transformers import Transformer
from simperf.workload.tuning import BASES, Adapters, Documents

__all__ = ["KERNELS", "OPTIONS", "SLOW_LINK", "chooses_kernels", "slow_links", "train", "workload_of"]

Strategy = Literal["ddp", "data-parallel", "naive", "local-sgd", "model-parallel"]

_DDP = Section.of(
    DDP,
    *("algorithm", "options", "bucket", "first_bucket", "overlap", "slowdown"),
    *("accumulate", "broadcast", "bucket_view", "watched", "waits"),
)
_LOCAL_SGD = Section.of(LocalSGD, "algorithm", "options", "every", "accumulate", "watched")
_MODEL_PARALLEL = Section.of(
    ModelParallel,
    *("options", "microbatch", "schedule", "chunks", "stage_layers", "recompute", "recompute_layers"),
    *("sequence_parallel", "context_exchange"),
)
_MESSAGES = Section.of(
    StageMessages, overlap_messages="overlap", synchronous_messages="synchronous", scatter_messages="scattered"
)
_ROUTING = Section.of(
    Routing,
    expert_load="load",
    expert_shares="shares",
    expert_draws="draws",
    expert_capacity="capacity",
    pad_experts="padded",
    expert_exchange="exchange",
    exchange_blocks="exchange_blocks",
    expert_groups="groups",
    groups_per_token="groups_per_token",
)
_SHARES_FILE = Parameter(
    "expert_shares_file", str, "", "file of expert_shares beside the scenario: CSV, a line for each draw", "Routing"
)
_EXCHANGE = Section.of(
    DataExchange,
    *("overlap_weights", "clip"),
    gradient_bucket="bucket",
    pipeline_runs="runs",
    reshard_weights="reshard",
    prefetch_weights="prefetch",
    reduce_gradients="reduce",
    gathered_precision="gathered",
    kept_precision="kept",
    flat_weights="flat",
)
#: of them what has an effect whether weights are sharded or not
_DATA = ("gradient_bucket", "overlap_weights", "clip", "pipeline_runs")
_STRATEGIES: Mapping[type[Any], Section] = {
    DDP: _DDP,
    LocalSGD: _LOCAL_SGD,
    DataParallel: Section.of(DataParallel, "watched"),
    ByHand: Section.of(ByHand),
    ModelParallel: _MODEL_PARALLEL,
}
_JOB = Section.of(Job, "batch", "batch_per_gpu", "steps", "total")
_DEVICES = Section.of(Devices, "gpus", "split", "speeds", "exact", "alone", "alone_accumulate", devices="nodes")
_MODEL = (
    Parameter("model", str, "", "a model of the zoo; without one, the layers below are trained", "Traced"),
    Parameter("precision", str, "fp32", "of the model", "Traced"),
    Parameter(
        "optimizer", str, "", "of the model, or its implementation of the model's: for-loop, foreach or fused", "Traced"
    ),
)
#: kernels of a layer, for a model by its dimensions, the library of attention for any, the format for traced ones
KERNELS = Section.of(
    LayerKernels, "attention_library", "memory_format", "batch_norm", attention_kernels="attention", norm_kernels="norm"
)
#: kernels of a layer that a layout divides
_DIVIDED = Section.of(
    LayerKernels,
    *("gradient_accumulation", "placeholders", "gradient_overlap", "cross_entropy", "expert_products"),
    *("projections", "gathered_inputs", "activation_inputs", "quantized_inputs"),
    *("product_parts", "parts_exchange", "captured"),
    rotary_kernels="rotary",
    activation_kernels="activation",
    residual_kernels="residual",
    bias_kernels="bias",
    gradient_precision="gradients",
    product_precision="products",
    wide_first_blocks="wide_first",
    wide_last_blocks="wide_last",
    recomputed_part="recomputed",
    end_norm_kernels="end_norm",
    gradients_apart="apart",
    update_kernels="update",
)
_ADAPTERS = Section.of(Adapters, lora_rank="rank", lora_targets="targets", frozen_precision="base")
_DOCUMENTS = Section.of(Documents, document_tokens="tokens", document_lengths="lengths")
_ALLOCATOR = Section.of(Stack, "allocator")
_OFFLOAD = Section.of(Offload, offload_layers="layers", offload_states="states", offload_piece="piece")
_LAYERS = Section.of(
    Layers,
    *("forward", "backward", "fixed", "update", "sizes", "activations", "states"),
    defaults={"count": 10, "forward": 0.2e-3, "backward": 0.4e-3, "nbytes": 100e6, "states": 1.0},
    layers="count",
    weights="nbytes",
    sample="nbytes_input",
    output="nbytes_output",
)
_INPUT = Section.of(
    Input,
    *("loop", "decode", "workers", "prefetch", "disk", "stored", "counted", "dataset", "batches"),
    decode_jitter="jitter",
    decode_cv="cv",
)
_DISTURBANCES = Section.of(
    Disturbances,
    *("variation", "jitter", "cv", "stragglers"),
    straggler_slowdown="slowdown",
)
_NOISE = Section.of(
    Noise,
    kernel_deviation="kernels",
    launch_deviation="launches",
    interrupted_every="every",
    interrupted_for="pause",
    noise_draws="draws",
)

#: kernels of a block's forward pass at least, by its normalization; those of its backward pass are as many
_KERNELS = {"rms": 30, "layer": 12}


#: the one link that parameters name
SLOW_LINK = Section.of(SlowLink, slow_link="link", slow_share="share", slow_from="start", slow_until="end")


def slow_links(given: Mapping[str, Any]) -> tuple[SlowLink, ...]:
    """The link that parameters name, if they do."""
    return (SLOW_LINK.made(given),) if given["slow_link"] else ()


def _rules(given: Mapping[str, Any]) -> tuple[Unless, ...]:
    """What has an effect only together with something else."""
    return (
        Unless(not given["model"], tuple(_LAYERS.keys), "a model of the zoo brings its own layers", "no model"),
        Unless(
            bool(given["model"]), ("precision", "optimizer"), "layers in round numbers have none", "a model of the zoo"
        ),
        *chooses_kernels(given),
        Unless(not given["devices"], ("gpus",), "the devices are named", "no devices"),
        Unless(given["workers"] > 0, ("prefetch",), "nothing is decoded ahead without workers", "workers = 1 or more"),
        deviates(given),
        deviates(given, "decode_jitter", "decode_cv"),
        Unless(
            bool(given["decode"]),
            ("decode_jitter", "decode_cv"),
            "nothing is decoded",
            "decode = the time of a sample",
        ),
        Unless(given["stragglers"] > 0, ("straggler_slowdown",), "no device is slow", "stragglers = 1 or more"),
        slows(given),
        *_of_noise(given),
        *_of_layout(given),
        *_of_other_strategies(given["strategy"]),
    )


def _of_noise(given: Mapping[str, Any]) -> Iterable[Unless]:
    """Options that have an effect only where something varies."""
    expected = "interrupted_every = the mean time between interruptions"
    yield Unless(given["interrupted_every"] > 0.0, ("interrupted_for",), "nothing is interrupted", expected)
    why, expected = "nothing varies from step to step", "kernel_deviation or jitter"
    yield Unless(_varies(given), ("noise_draws",), why, expected)


def _varies(given: Mapping[str, Any]) -> bool:
    """Whether steps differ."""
    varying = given["kernel_deviation"], given["launch_deviation"], given["interrupted_every"] > 0.0
    return given["jitter"] != "constant" or any(varying)


def _of_layout(given: Mapping[str, Any]) -> Iterable[Unless]:
    """What has an effect only where the model is divided, or where it is not."""
    divided = given["strategy"] == "model-parallel"
    expected = 'strategy = "model-parallel"'
    keys = (*_DIVIDED.keys, *_ADAPTERS.keys, *_DOCUMENTS.keys, *_OFFLOAD.keys, *_MESSAGES.keys, *_ROUTING.keys)
    keys = (*keys, *_NOISE.keys, *_DATA, *_ALLOCATOR.keys)
    yield Unless(divided, keys, "no layout divides the model", expected)
    if divided:
        yield from _of_divided_kernels(given)
    layout = given["layout"]
    fully = divided and isinstance(layout, Layout) and layout.sharding == "zero-3"
    why, other = "every rank has all weights of its part of the model", 'layout.sharding = "zero-3"'
    # weights that a recipe multiplies in fp8 are gathered so with every sharding
    sharded = divided and isinstance(layout, Layout) and layout.sharding != "none"
    narrow = ("gathered_precision",) if sharded and given["gathered_precision"] == "fp8" else ()
    yield Unless(fully, tuple(key for key in _EXCHANGE.keys if key not in (*_DATA, *narrow)), why, other)
    yield Unless(divided, ("layout",), "the strategy gives every device the whole model", expected)
    why = "strategy model-parallel has Adam's update, of the precision"
    yield Unless(not divided, ("optimizer",), why, 'strategy = "ddp"')


def _of_divided_kernels(given: Mapping[str, Any]) -> Iterable[Unless]:
    """Kernels of a divided layer without effect beside others; what a stack sets holds for other jobs, too."""

    def rule(used: bool, name: str, why: str, expected: str) -> Unless:
        return Unless(used or set_by_stack(given, LayerKernels, _DIVIDED.keys[name], name), (name,), why, expected)

    quantized = given["frozen_precision"] in BASES
    yield rule(quantized, "quantized_inputs", "no matrix is in 4 bits", 'frozen_precision = "nf4"')
    precision = TRAINING_PRECISIONS.get(given["precision"])
    copied = precision is None or (precision.weights != precision.states and given["gradient_precision"] != "fp32")
    joins = not given["update_kernels"].startswith("joined") or copied
    why = "gradients are as wide as what the optimizer updates: none are joined to be copied"
    yield rule(joins, "update_kernels", why, "fused, foreach or unfused")
    if isinstance(given["model"], Transformer):
        kind = given["model"].norm
        eager = LayerKernels(norm=given["norm_kernels"]).fuses_norm(kind) == LayerKernels().fuses_norm(kind)
        why, expected = "the norms of the blocks are as eager ones", 'norm_kernels = "fused" with RMS norms'
        yield rule(not eager, "end_norm_kernels", why, expected)


def _events(given: Mapping[str, Any]) -> float:
    """About how many events training is, at least: the passes of a device, and a collective a bucket."""
    steps = given["steps"] * given["accumulate"]
    layers = _passes(given) if given["model"] else max(given["layers"], len(given["sizes"]))
    nbytes = 0.0 if given["model"] else given["weights"]
    buckets = nbytes / given["bucket"] if given["bucket"] > 0 else 0.0
    return float(4.0 * steps * layers + given["steps"] * min(buckets, layers))


def _passes(given: Mapping[str, Any]) -> int:
    """About how many kernels the forward pass of a model launches; 1 where they are few, or are simulated in one."""
    model = given["model"]
    whole = isinstance(model, Transformer) and given["strategy"] != "model-parallel"
    return _KERNELS[model.norm] * model.layers if whole else 1


def chooses_kernels(given: Mapping[str, Any]) -> Iterable[Unless]:
    """Kernels of a layer have an effect for models by their dimensions, a library of attention where that is one."""
    traced = not given["model"] or isinstance(given["model"], str)
    why = "a traced model brings its own kernels" if given["model"] else "layers in round numbers have none"
    yield Unless(not traced, ("norm_kernels",), why, "[model] with layers, hidden, heads, ...")
    yield Unless(bool(given["model"]), ("attention_kernels",), why, "a model with attention")
    why, expected = "layers in round numbers have no attention", "a model with attention"
    if given["model"]:
        why, expected = "attention is written out", 'attention_kernels = "flash"'
    one = bool(given["model"]) and given["attention_kernels"] == "flash"
    yield Unless(one, ("attention_library",), why, expected)
    why = "a transformer has no images" if given["model"] else "layers in round numbers have no images"
    images = ("memory_format", "batch_norm")
    yield Unless(bool(given["model"]) and traced, images, why, "a traced model with convolutions")


def _of_other_strategies(strategy: str) -> Iterable[Unless]:
    """Options that the strategy does not have."""
    own = _STRATEGIES[TRAINED[strategy]].keys
    for option in dict.fromkeys(key for section in _STRATEGIES.values() for key in section.keys):
        owners = [name for name, kind in TRAINED.items() if option in _STRATEGIES[kind].keys]
        expected = f"{option} with strategy {' or '.join(owners)}"
        yield Unless(option in own, (option,), f"{strategy} has no use for it", expected)


def _job(given: Mapping[str, Any]) -> Job:
    problems: list[Problem] = []
    kinds: dict[str, Any] = {
        "strategy": _STRATEGIES[TRAINED[given["strategy"]]],
        "devices": _DEVICES,
        "input": _INPUT,
    }
    made: dict[str, Any] = {}
    for name, section in kinds.items():
        try:
            more = {}
            if section is _MODEL_PARALLEL:
                own = {"messages": _MESSAGES, "routing": _ROUTING, "exchange": _EXCHANGE}
                more = {key: each.made(given) for key, each in own.items()}
            if section is _DEVICES:
                more = {"offload": _OFFLOAD.made(given)}
            made[name] = section.made(given, **more)
        except InputError as error:
            problems += error.problems
    try:
        made["failures"] = failures_of(given)
    except InputError as error:
        problems += error.problems
    try:
        noise = _NOISE.made(given)
        noise = noise if _varies(given) else replace(noise, draws=0)  # the rules refuse draws of what does not vary
        made["disturbances"] = _DISTURBANCES.made(given, links=slow_links(given), noise=noise)
    except InputError as error:
        problems += error.problems
    if "strategy" not in made:  # what the model and the stack have to be depends on it
        raise InputError(problems)
    divided = isinstance(made["strategy"], ModelParallel)
    kernels = _every_kernel(given) if divided else KERNELS.made(given)
    if divided:
        made["layout"] = given["layout"] if isinstance(given["layout"], Layout) else None
        model: Workload = _divided_model(given, kernels)
    else:
        model = workload_of(given["model"], given["precision"], given["optimizer"], kernels, layers=_LAYERS.made(given))
    try:
        job: Job = _JOB.made(given, model=model, stack=stack_of(given, kernels=kernels), **made)
    except InputError as error:
        problems += error.problems
    if problems:
        raise InputError(problems)
    return job


def _every_kernel(given: Mapping[str, Any]) -> LayerKernels:
    """Kernels of a layer that a layout divides."""
    keys = {**KERNELS.keys, **_DIVIDED.keys}
    kernels: LayerKernels = Section(LayerKernels, keys).made(given)
    return kernels


def _divided_model(given: Mapping[str, Any], kernels: LayerKernels) -> Workload:
    """The transformer that a layout divides."""
    if not isinstance(given["model"], Transformer):
        message = "a transformer by its dimensions is expected: a layout divides no other model"
        expected = "[model] with layers, hidden, heads, ..., or the name of a shipped transformer"
        raise InputError(Problem(message, key="model", value=str(given["model"]), expected=expected))
    tuned = {"adapters": _ADAPTERS.made(given), "documents": _DOCUMENTS.made(given)}
    return Dimensions(given["model"], kernels, given["precision"], **tuned)


_PARAMETERS: tuple[Parameter | Section, ...] = (
    Parameter("strategy", Strategy, "ddp", "how devices share the work, and how gradients or weights travel", "Job"),
    Parameter("layout", str, "", "ranks along each dimension of the model's division: the table [layout]", "Job"),
    *(_JOB, _DEVICES, *_MODEL, KERNELS, _DIVIDED, _ADAPTERS, _DOCUMENTS, _OFFLOAD, _ALLOCATOR, _LAYERS),
    *_STRATEGIES.values(),
    *(_MESSAGES, _ROUTING, _SHARES_FILE, _EXCHANGE),
    *(_INPUT, _DISTURBANCES, _NOISE, SLOW_LINK, FAILURES_PARAMETER),
)


class _TrainingOptions(JobOptions):
    """Options of a training job; files of shares are looked for beside the scenario."""

    def completed(self, given: Mapping[str, Any], *, folder: str | os.PathLike[str] = ".") -> dict[str, Any]:
        """Values of all parameters, the shares of a file among them."""
        values = super().completed(given, folder=folder)
        if not values[_SHARES_FILE.name]:
            return values
        if values["expert_shares"]:
            message, expected = "expert_shares says it", "one of the two"
            raise InputError(
                Problem(message, key=_SHARES_FILE.name, value=values[_SHARES_FILE.name], expected=expected)
            )
        from simperf.programs.expert_shares import read_shares

        return values | {
            "expert_shares": read_shares(Path(folder) / values[_SHARES_FILE.name]),
            _SHARES_FILE.name: _SHARES_FILE.default,  # what was read stands for it
        }


#: the parameters of the program, and the job that they make
OPTIONS = _TrainingOptions(
    _PARAMETERS, _rules, _job, strategies=tuple(TRAINED), fields={(Stack, "optimizer"): "optimizer"}
)


@program("train", rules=_rules, options=OPTIONS, events=_events)
def train(m: Session, job: Job) -> Program:
    """Train by data or model parallelism, and see what scaling costs (data parallelism: sections 12.5 and 12.6)."""
    yield play_job(m, job)


def workload_of(
    model: str, precision: str = "fp32", optimizer: str = "", kernels: LayerKernels | None = None, *, layers: Workload
) -> Workload:
    """A model of the zoo, or layers in round numbers if none is named."""
    if not model:
        return layers
    from simperf.workload.zoo import load

    return Traced(load(model, kernels), precision, optimizer)
