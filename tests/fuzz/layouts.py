"""Scenarios of divided models: a small transformer, a layout, and options of model parallelism, some of them odd."""

from dataclasses import fields
from functools import cache
from typing import Annotated, Literal, get_args, get_origin

import tomli_w

from simperf.layout.layout import DIMENSIONS, SHARDINGS, Layout
from simperf.programs.training import OPTIONS
from simperf.schedules import SCHEDULES
from simperf.workload.mixed import TRAINING_PRECISIONS
from tests.fuzz import mutations

__all__ = ["SECTIONS", "layout_case", "options"]

#: types whose fields are options of a divided model
SECTIONS = (
    *("ModelParallel", "StageMessages", "Routing", "DataExchange", "LayerKernels", "Adapters", "Documents"),
    *("Offload", "Noise", "Disturbances", "SlowLink"),
)
#: values of numbers by their dimension
QUANTITIES = {
    "B": ("0 B", "1 B", "100 kB", "25 MB", "1 GB", "1e30 B", "-1 MB", 0.5),
    "s": ("0 s", "1 us", "10 us", "1 ms", "1 s", "1e30 s", "-1 s", 0.5),
    "1": (0.0, 0.01, 0.5, 1.0, 1.25, 4.0, 1e9, -1.0, "5 %"),
}
#: machines, each with its GPUs; the last has no NVLink
MACHINES = {"dgx-a100-x4": 32, "dgx-h100": 8, "dgx-a100": 8, "p3-8xlarge": 4}
STACKS = ("megatron-core", "torch-fsdp2", "torch-fsdp2-compiled", "megatron-deepspeed", "llm-foundry", "megatron-core")
SIZES = (1, 2, 2, 2, 4, 4, 8)
NUMBERS = (0, 1, 2, 3, 4, 5, 8, 16, 64, 1000, -1, 10**6)
DENSE = {"layers": 4, "hidden": 256, "heads": 8, "vocabulary": 1000, "sequence": 128}
EXPERTS = {**DENSE, "experts": 8, "experts_per_token": 2, "expert_ffn": 128}
LATENT = {"kv_rank": 64, "q_rank": 64, "rope_dim": 16, "value_dim": 32, "head_dim": 32}
#: keys of a model that need others, or take part in its arithmetic
CHANGES = (
    *({"kv_heads": count} for count in (1, 2, 4, 8, 3)),
    *(
        {key: True}
        for key in ("tied", "bias", "qkv_bias", "qk_norm", "dropout", "sinks", "embed_norm", "parallel_block")
    ),
    *({"norm": "layer", "positions": one, "activation": "gelu"} for one in ("learned", "rotary", "alibi", "none")),
    *({"layers": count} for count in (1, 2, 3, 6, 8, 12)),
    *({"window": 32, "window_layers": count} for count in (1, 4, 9)),
    *({"window": 32, "window_layers": 1, "sinks": one} for one in (True, False)),
    *({"sequence": count} for count in (1, 7, 96, 1024)),
    *({"shared_experts": 1}, {"dense_layers": 1}, {"mtp": 1}, {"experts": 6}, {"experts_per_token": 9}, LATENT),
    *({"head_dim": 40}, {"ffn": 1001}, {"ffn": 1024}, {"vocabulary": 1}, {"hidden": 8}),
)


@cache
def options():
    """Options of a divided model by name, each with its annotation."""
    own = {name: one.annotation for name, one in OPTIONS.parameters.items() if one.section in SECTIONS}
    return own | {"options": OPTIONS.parameters["options"].annotation}


def layout_case(rng):
    """A scenario as bytes, and what is special about it."""
    machine = rng.choice(list(MACHINES))
    model = dict(EXPERTS if rng.random() < 0.35 else DENSE)
    layout = _layout(rng, MACHINES[machine], spread="experts" in model)
    for change in rng.sample(CHANGES, rng.choice([0, 0, 1, 2])):
        model |= change
    program = {"use": "train", "strategy": "model-parallel", "precision": "bf16-master", "steps": rng.choice([1, 2])}
    microbatch = rng.choice([1, 1, 2])
    program |= {"batch": layout.get("dp", 1) * microbatch * rng.choice([1, 2, 4, 8, 3])}
    program |= {"microbatch": microbatch} if microbatch > 1 else {}
    program |= {"sequence_parallel": True} if layout.get("tp", 1) > 1 and rng.random() < 0.6 else {}
    if rng.random() < 0.3:
        program["stack"] = rng.choice(STACKS)
    if rng.random() < 0.1:
        program["precision"] = rng.choice([*TRAINING_PRECISIONS, "fp8", ""])
    if rng.random() < 0.1:
        program["exact"] = rng.choice(["yes", "no"])
    usual = [name for name in sorted(options()) if _has_effect(name, layout, model)]
    chosen = rng.sample(usual if rng.random() < 0.8 else sorted(options()), rng.choice([0, 1, 1, 2, 3, 4]))
    program |= {name: _value(rng, name, options()[name], model) for name in chosen}
    tree = {"machine": {"use": machine}, "frontend": {"use": "pytorch"}, "model": model}
    tree |= {"layout": layout, "program": program}
    changed = [f"{layout} {sorted(chosen)}"]
    if layout.get("sharding") == "zero-2" and rng.random() < 0.9:
        program.setdefault("gradient_bucket", "25 MB")
    if rng.random() < 0.15:
        changed += [str(mutations.change(rng, tree[rng.choice(["layout", "program", "model"])]))]
    try:
        return tomli_w.dumps(tree).encode("utf-8", "surrogatepass"), " ".join(changed)
    except (TypeError, ValueError, RecursionError):
        return b"[layout]\ndp = 2\n", "not written"


def _has_effect(name, layout, model):
    """Whether an option is likely to have an effect."""
    if name.startswith("expert") or name == "pad_experts":
        return "experts" in model
    sharded = ("reshard_weights", "prefetch_weights", "reduce_gradients", "flat_weights")
    if name in (*sharded, "gathered_precision", "kept_precision"):
        return layout.get("sharding") == "zero-3"
    if name.endswith("_messages"):
        return layout.get("pp", 1) > 1
    needs = {"context_exchange": "cp", "sequence_parallel": "tp", "overlap_weights": "sharding", "chunks": "pp"}
    return name not in needs or needs[name] in layout


def _layout(rng, most, *, spread):
    """A table of a layout, which mostly has no more ranks than there are, and spreads experts where there are any."""
    layout, left = {}, most if rng.random() < 0.95 else 8 * most
    for name in rng.sample(["dp", "tp", "pp", "cp"], 4):
        size = rng.choice([one for one in SIZES if one <= left] or [1])
        if size > 1 and rng.random() < 0.6:
            layout[name], left = size, left // size
    shared = layout.get("dp", 1) * layout.get("cp", 1)
    if rng.random() < (0.7 if spread else 0.03):
        layout["ep"] = rng.choice([one for one in SIZES if shared % one == 0])
    if rng.random() < (0.6 if shared > 1 else 0.05):
        layout["sharding"] = rng.choice(SHARDINGS)
    for one in fields(Layout):
        if rng.random() < 0.015:
            layout[one.name] = rng.choice(NUMBERS)
    if rng.random() < 0.05:
        layout["order"] = "-".join(rng.sample(DIMENSIONS, len(DIMENSIONS)))
    return layout


def _value(rng, name, annotation, model):
    """A value of an option: one of those that it may have, or near them."""
    if rng.random() < 0.05:
        return mutations.value(rng, 1)
    if name == "schedule":
        return rng.choice(sorted(SCHEDULES))
    if name == "stage_layers":
        parts = rng.choice([1, 2, 4])
        return [model["layers"] // parts] * (parts - 1) + [model["layers"] - model["layers"] // parts * (parts - 1)]
    if name == "expert_load":
        return rng.choice(["balanced", "power-law-1.2", "power-law-2/3", "power-law", ""])
    if name == "lora_targets":
        return rng.sample(["qkv", "q", "k", "v", "projection", "up", "down", "head"], rng.choice([0, 1, 2, 3]))
    origin = get_origin(annotation)
    if origin is Literal:
        return rng.choice(get_args(annotation))
    if origin is list:
        kind = get_args(annotation)[0]
        return [kind(rng.choice(NUMBERS)) for _ in range(rng.choice([0, 1, 2, model.get("experts", 4)]))]
    if annotation is bool:
        return rng.random() < 0.7
    if annotation is int:
        return rng.choice(NUMBERS)
    if origin is Annotated:
        units = (one.dimension for one in get_args(annotation)[1:] if hasattr(one, "dimension"))
        return rng.choice(QUANTITIES[next(units, "1")])
    if annotation is float:
        return rng.choice(QUANTITIES["1"])
    if name == "slow_link":
        return rng.choice(["gpu0>nvswitch0", "gpu0", "n0/gpu0>n0/nvswitch0", "nothing"])
    if name == "options":
        return rng.choice(
            [{}, {"in_network": True}, {"version": "2.19"}, {"protocol": "LL"}, {"network": "x"}, {"a": 1}]
        )
    return rng.choice(["", "x", "nccl"]) if annotation is str else {}
