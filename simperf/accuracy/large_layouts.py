"""Layouts of published cases, and the strategies with which they train."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from simperf.accuracy.large_features import OVERLAPS, features_of
from simperf.accuracy.large_precisions import large_precision
from simperf.layout import Layout
from simperf.layout.layout import Sharding
from simperf.schedules import SCHEDULES, options_of
from simperf.schedules.registry import model_parts
from simperf.workload.routing import Routing
from simperf.workload.transformers.flops import Recomputation
from simperf.workload.tuning import Adapters, BasePrecision

__all__ = ["SCHEDULE_NAMES", "LargeLayout", "large_layout"]

#: recomputation of a case -> of a job
_RECOMPUTE: Mapping[str, Recomputation] = {
    "none": "none",
    "none at 8K": "none",
    "full": "full",
    "selective": "selective",
    "selective (attention core)": "selective",
    "selective (SAC per-op)": "selective-op",
}
#: exchange of keys and values of a case, as Transformer Engine calls it -> of a job
_CONTEXT = {"p2p": "ring", "all_gather": "all-gather", "a2a": "all-to-all"}
#: what stands for a sharding in a pipeline: DeepSpeed's refuses ZeRO-2, and Megatron-LM reduces gradients once a step
PIPELINED: Mapping[Sharding, Sharding] = {"zero-2": "zero-1"}
_SHARDING: Mapping[str, Sharding] = {"0": "none", "1": "zero-1", "2": "zero-2", "3": "zero-3", "None": "none"}
#: schedule of a case -> of a job; the others are called alike
SCHEDULE_NAMES = {
    "1f1b-interleaved": "interleaved",
    "interleaved 1f1b": "interleaved",
    "zero-bubble": "zb-h1",
    "zbb": "zb-h1",  # its bubble and its memory in AMD-AGI/Primus, primus_pipeline.md, are those of ZeroBubble(ZB1P)
    "zbv": "zb-v",
}


#: method of a case -> how frozen matrices are kept
_BASES: Mapping[str, BasePrecision] = {"lora": "as-products", "qlora": "nf4"}


@dataclass(frozen=True, slots=True)
class LargeLayout:
    """Layout, batch, schedule and choices of a case.

    Parameters
    ----------
    layout : Layout
    batch, microbatch : int
        Sequences of a step and of a micro-batch.
    chunks : int
        Chunks of layers on a stage.
    schedule : str
    recompute : str
    precision : str
        Of weights and activations.
    sequence_parallel : bool, optional
        None if it is not printed.
    gradients : str
        Precision that gradients are added up in; empty if it is not printed.
    overlap : bool, optional
        Whether gradients are reduced while the backward pass runs; None if it is not printed.
    tensor_overlap : bool, optional
        Whether tensor-parallel collectives run beside matrix products; None if it is not printed.
    fused_loss : bool, optional
        Whether cross-entropy is one kernel each way; None if it is not printed.
    framework : str
        As the case has it.
    stage_layers : tuple of int
        Layers of each part of the pipeline, where they are not even.
    products : str
        Precision of the blocks' products, where it is not that of weights.
    reshard : str
        Whether weights that are fully sharded are given back after the forward pass; empty for what the stack has.
    gathered : str
        Precision in which they are gathered; empty for what the stack has.
    compiled : bool
        Whether layers are compiled.
    software : str
        Versions, as the case has them.
    weights_overlap : bool
        Whether the next step begins while weights are gathered.
    routing : Routing
        Of tokens to experts.
    context_exchange : str
        How ranks that share sequences exchange keys and values.
    product_ring : bool
        Whether products are cut into parts that go around a ring of tensor-parallel ranks (asynchronous tensor
        parallelism).
    adapters : Adapters
        That are trained beside frozen weights.
    pure : bool
        Whether the optimizer's states are as narrow as the weights, which have no copy in fp32.
    activation_inputs : str
        How what activations read is kept; empty for what the stack has.
    messages_overlap : bool
        Whether messages between stages travel beside passes; otherwise as the stack has them.
    product_parts : int
        Parts of products beside which tensor-parallel collectives run, if these are no ring; 0 for what the stack has.
    """

    layout: Layout
    batch: int
    microbatch: int
    chunks: int
    schedule: str
    recompute: Recomputation
    precision: str
    sequence_parallel: bool | None
    gradients: str
    overlap: bool | None
    tensor_overlap: bool | None
    fused_loss: bool | None
    framework: str
    stage_layers: tuple[int, ...] = ()
    routing: Routing = field(default_factory=Routing)
    context_exchange: str = "ring"
    products: str = ""
    reshard: str = ""
    gathered: str = ""
    compiled: bool = False
    software: str = ""
    weights_overlap: bool = False
    product_ring: bool = False
    adapters: Adapters = field(default_factory=Adapters)
    pure: bool = False
    activation_inputs: str = ""
    messages_overlap: bool = False
    product_parts: int = 0

    @property
    def microbatches(self) -> int:
        """Micro-batches of a step on each data-parallel rank."""
        return self.batch // (self.layout.dp * self.microbatch)


def large_layout(
    how: Mapping[str, Any], hardware: Mapping[str, Any], shape: Mapping[str, Any], assumed: list[str]
) -> LargeLayout:
    """Layout and choices of a case.

    Parameters
    ----------
    how, hardware, shape : mapping
        Its `parallelism`, `hardware` and `model`.
    assumed : list of str
        Gets what is assumed.

    Raises
    ------
    KeyError
        Something needed is not printed.
    ValueError
        What no job has, in words.
    InputError
        What does not divide.
    """
    for name in how.get("inferred", ()):
        assumed.append(f"parallelism.{name} = {how.get(name)}")
    adapters = _large_adapters(how)
    sizes: dict[str, Any] = {key: int(how.get(key) or 1) for key in ("tp", "pp", "cp", "ep")}
    if how.get("model_parallel") and "tp" not in how:
        raise ValueError("only the product of tp, pp and cp is printed")
    gpus = 1 if how.get("one_gpu") else int(hardware.get("n_gpus") or 0)
    inside = sizes["tp"] * sizes["pp"] * sizes["cp"]
    dp = int(how.get("dp") or 0) or gpus // inside
    if not dp:
        raise KeyError("parallelism.dp")
    sharding = _SHARDING.get(str(how.get("zero")))
    if sharding is None:
        raise ValueError(f"sharding {how.get('zero')!r}")
    if how.get("zero") is None:
        assumed.append("no sharding")
    if sizes["pp"] > 1 and sharding in PIPELINED:
        assumed.append("gradients of a pipeline are reduced once a step, as its stacks do")
        sharding = PIPELINED[sharding]
    group = how.get("zero_group")
    if sharding != "none" and group not in (None, "all DP") and group < dp:
        if dp % group:
            raise ValueError(f"sharding over {group} of {dp} data-parallel ranks")
        sizes["dp_replicate"] = dp // group
    if shape.get("experts"):
        sizes["etp"] = int(how.get("etp") or 1)
    framework, software = (
        str(how.get("framework") or ""),
        str(how.get("software") or "").replace("pytorch ", "pytorch:"),
    )
    fully = "FSDP" in framework
    shared: Sharding = "zero-3" if fully else sharding
    layout = Layout(dp=dp, **sizes, sharding="none" if dp * sizes["cp"] == 1 else shared)
    if gpus and layout.ranks != gpus:
        raise ValueError(f"the layout has {layout.ranks} ranks for {gpus} GPUs")
    precision = large_precision(how, str(hardware.get("gpu", "")), assumed)
    wide = "fp32" if fully and how.get("fsdp_mixed_precision") == "DEFAULT" and "pytorch:1.13" in software else ""
    batch, microbatch = _batch(how, dp, assumed)
    features = features_of(how)
    tensor, pipeline, data = (one in features for one in OVERLAPS)
    if tensor and not how.get("product_parts"):
        raise KeyError("parallelism.product_parts")
    printed = int(how.get("vpp") or 1)
    schedule = _schedule(how, printed)
    chunks = printed if "chunks" in options_of(schedule) else 1
    parts = model_parts(schedule, layout.pp, chunks)
    return LargeLayout(
        layout=layout,
        batch=batch,
        microbatch=microbatch,
        chunks=chunks,
        schedule=schedule,
        recompute=_recompute(how, assumed),
        precision=precision.weights,
        sequence_parallel=_sequence_parallel(how, layout, assumed),
        gradients=precision.gradients,
        overlap=True if data else _choice(how, "overlap_dp"),
        tensor_overlap=_choice(how, "overlap_tp"),
        fused_loss=_choice(how, "ce_fusion"),
        framework=framework,
        stage_layers=_stage_layers(how, shape, parts, assumed),
        routing=_routing(how, shape, assumed),
        context_exchange=_context_exchange(how, layout, assumed),
        products=precision.products,
        reshard="never" if fully and sharding == "zero-2" else "",
        gathered=wide or ("" if layout.sharding == "none" else precision.gathered),
        compiled=how.get("compile") is True,
        software=software,
        weights_overlap=data or how.get("overlap_weights") is True,
        product_ring=how.get("async_tp") is True,
        adapters=adapters,
        pure=how.get("pure_precision") is True,
        activation_inputs=str(how.get("activation_inputs") or ""),
        messages_overlap=pipeline,
        product_parts=int(how["product_parts"]) if tensor else 0,
    )


def _choice(how: Mapping[str, Any], key: str) -> bool | None:
    """A choice, or None where it is not printed."""
    return how[key] if isinstance(how.get(key), bool) else None


def _context_exchange(how: Mapping[str, Any], layout: Layout, assumed: list[str]) -> str:
    """The exchange of keys and values among ranks that share sequences."""
    if layout.cp == 1:
        return "ring"
    printed = str(how.get("cp_comm") or "")
    if not printed:
        assumed.append("keys and values go around a ring")
        return "ring"
    if printed not in _CONTEXT:
        raise ValueError(f"context parallelism by {printed!r}")
    return _CONTEXT[printed]


def _sequence_parallel(how: Mapping[str, Any], layout: Layout, assumed: list[str]) -> bool | None:
    """Whether tensor-parallel ranks share the tokens, or None where it is not printed."""
    printed = _choice(how, "sequence_parallel")
    if printed is None and layout.tp > 1 and "FSDP2" in str(how.get("framework")):
        assumed.append("sequence parallelism, as torchtitan has it with tensor parallelism")
        return True
    return printed


def _routing(how: Mapping[str, Any], shape: Mapping[str, Any], assumed: list[str]) -> Routing:
    """Routing of tokens to experts."""
    capacity = float(how.get("moe_capacity_factor") or 0.0)
    if shape.get("experts") and not capacity:
        assumed.append("even loads of experts")
    return Routing(capacity=capacity, padded=bool(how.get("moe_pad_to_capacity")))


def _batch(how: Mapping[str, Any], dp: int, assumed: list[str]) -> tuple[int, int]:
    microbatch = how.get("micro_batch")
    if not microbatch:
        assumed.append("micro-batches of one sequence")
        microbatch = 1
    count = how.get("micro_batch_count") or how.get("grad_accum")
    batch = how.get("global_batch") or (count and dp * int(microbatch) * int(count))
    if not batch:
        raise KeyError("parallelism.global_batch")
    if int(batch) % (dp * int(microbatch)):
        raise ValueError(f"{batch} sequences are no multiple of {dp} ranks x {microbatch}")
    return int(batch), int(microbatch)


def _stage_layers(how: Mapping[str, Any], shape: Mapping[str, Any], parts: int, assumed: list[str]) -> tuple[int, ...]:
    """Layers of each part of a pipeline; none where they are even."""
    if how.get("stage_layers"):
        return tuple(int(count) for count in how["stage_layers"])
    layers, printed = int(shape.get("layers") or 0), str(how.get("pp_partition") or "")
    if not layers % parts and (not printed or printed.startswith("uniform")):
        return ()
    each = -(-layers // parts)
    if not printed and (layers + 2) % parts and shape.get("mtp_layers") and each * (parts - 1) < layers:
        # NVIDIA-NeMo/Megatron-Bridge, recipes/deepseek, set_deepseek_v3_pipeline_model_parallel_layout
        assumed.append("the last part has fewer layers, beside the prediction further ahead")
        return (*[each] * (parts - 1), layers - each * (parts - 1))
    if (layers + 2) % parts or "uniform" in printed:
        raise ValueError(f"{layers} layers do not divide into {parts} parts of a pipeline")
    if not printed:
        assumed.append("embedding and loss count as layers")
    elif "layers+2" not in printed:
        raise ValueError(f"stages of unequal layers ({printed})")
    each = (layers + 2) // parts
    return (each - 1, *[each] * (parts - 2), each - 1) if parts > 1 else ()


def _schedule(how: Mapping[str, Any], chunks: int) -> str:
    printed = str(how.get("schedule") or "").lower().split("(")[0].strip()
    if printed in ("", "1f1b", "none"):
        return "interleaved" if chunks > 1 else "1f1b"
    found = SCHEDULE_NAMES.get(printed, printed)
    if found not in SCHEDULES:
        raise ValueError(f"schedule {how['schedule']!r}")
    return found


def _recompute(how: Mapping[str, Any], assumed: list[str]) -> Recomputation:
    printed = how.get("recompute")
    if printed is None:
        assumed.append("no recomputation")
        return "none"
    if printed not in _RECOMPUTE:
        raise ValueError(f"recomputation {printed!r}")
    return _RECOMPUTE[printed]


def _large_adapters(how: Mapping[str, Any]) -> Adapters:
    """Adapters of a case; none where all weights are trained.

    Parameters
    ----------
    how : mapping
        Its `parallelism`.

    Raises
    ------
    ValueError
        A method that no job has.
    KeyError
        The rank of the adapters, or what they are beside, is not printed.

    Examples
    --------
    >>> _large_adapters({"method": "qlora", "lora_rank": 8, "lora_targets": ["q", "v"]}).base
    'nf4'
    """
    method = str(how.get("method") or ("lora" if "lora" in str(how.get("task", "")).lower() else "full"))
    if method == "full":
        return Adapters()
    if method not in _BASES:
        raise ValueError(f"fine-tuning by {method}")
    for key in ("lora_rank", "lora_targets"):
        if not how.get(key):
            raise KeyError(f"parallelism.{key}")
    return Adapters(int(how["lora_rank"]), tuple(map(str, how["lora_targets"])), _BASES[method])
