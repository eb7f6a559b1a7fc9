"""Jobs in 8 and 4 bits: their steps, their memory, weights that travel narrow, and what is refused."""

from dataclasses import replace

import pytest

import simperf
from simperf import DataExchange, Layout, ModelParallel, Transformer
from simperf.errors import InputError
from simperf.training.pipelined.division import divide, pacing_of
from simperf.training.pipelined.stage_memory import work_memory
from simperf.training.replica import Dimensions
from simperf.workload.layer_kernels import LayerKernels
from simperf.workload.product_recipe import RECIPES, product_recipe
from simperf.workload.tuning import Adapters

SMALL = Transformer(layers=4, hidden=1024, heads=8, kv_heads=4, ffn=4096, vocabulary=4096, sequence=1024)
MIXED = replace(SMALL, experts=8, experts_per_token=2, expert_ffn=1024, shared_experts=1)
FUSED = LayerKernels(norm="fused", rotary="fused", activation="fused", residual="fused", gradients="fp32")


def step(products, *, on="dgx-h100", layout=None, model=SMALL, strategy=None, **options):
    """Time of a step [s]."""
    set = {"program.product_precision": products, "program.steps": 1, **options}
    return (
        simperf.train(
            model,
            on=on,
            layout=layout or Layout(dp=2, sharding="zero-1"),
            strategy=strategy or ModelParallel(),
            stack="megatron-core",
            precision="bf16-master",
            batch=4,
            set=set,
        )
        .metrics["time per step"]
        .value
    )


def divided(products, *, architecture="hopper", sharding="zero-1", gathered="as-products", **kernels):
    layout = Layout(dp=4, sharding=sharding)
    strategy = ModelParallel(exchange=DataExchange(gathered=gathered))
    model = Dimensions(SMALL, replace(FUSED, products=products, **kernels), "bf16-master")
    return divide(model, layout, strategy, 8, architecture=architecture), layout, strategy


def memory(products, **options):
    work, layout, strategy = divided(products, **options)
    return work_memory(work, layout, pacing_of(layout, strategy))[0].peak.held


def matrices():
    return sum(sum(layer.scaled) for layer in divided("fp8-current")[0].parts[0])


@pytest.mark.parametrize("name", [one for one in RECIPES if product_recipe(one).units == "fp8"])
@pytest.mark.parametrize("sharding", ["none", "zero-1", "zero-3"])
def test_every_recipe_is_played_with_every_sharding(name, sharding):
    assert step(name, layout=Layout(tp=2, dp=2, sharding=sharding), strategy=ModelParallel(sequence_parallel=True)) > 0


@pytest.mark.parametrize("name", ["fp8-current", "nvfp4"])
@pytest.mark.parametrize(
    ("layout", "options", "model"),
    [
        (Layout(pp=2), {"schedule": "zb-h1"}, SMALL),
        (Layout(pp=2), {"schedule": "zb-v"}, SMALL),
        (Layout(pp=2), {"schedule": "dualpipe"}, SMALL),
        (Layout(cp=2, dp=2, sharding="zero-1"), {"recompute": "selective"}, SMALL),
        (Layout(ep=2, dp=2, sharding="zero-1"), {"recompute": "full"}, MIXED),
        (Layout(dp=2), {"offload_layers": 2}, SMALL),
        (Layout(dp=2, sharding="zero-1"), {"offload_states": "host"}, SMALL),
    ],
    ids=["zb-h1", "zb-v", "dualpipe", "context", "experts", "offloaded", "states"],
)
def test_recipes_are_played_beside_other_options(name, layout, options, model):
    more = {f"program.{key}": value for key, value in options.items()}
    assert step(name, on="dgx-b200", layout=layout, model=model, **more) > 0.0


def test_large_products_gain_and_casts_cost():
    """A bound: products are twice as fast at most, and everything else stays or is added."""
    big = replace(SMALL, hidden=8192, heads=64, kv_heads=8, ffn=28672, layers=2, sequence=4096)
    for on, names in (("dgx-h100", ("fp8-delayed", "fp8-current")), ("dgx-b200", ("fp8-current", "mxfp8"))):
        usual = step("as-weights", on=on, model=big)
        for name in names:
            assert usual / 2 < step(name, on=on, model=big) < usual
    assert step("fp8-delayed", model=big) < step("fp8-current", model=big)


def test_whole_and_class_of_ranks_are_played_alike():
    layout = Layout(tp=2, pp=2, dp=2, sharding="zero-1")
    strategy = ModelParallel(sequence_parallel=True, exchange=DataExchange(gathered="fp8"))

    def run(exact):
        more = {"program.exact": exact, "program.steps": 2}
        return step("fp8-current", layout=layout, strategy=strategy, **more)

    assert run("yes") == pytest.approx(run("no"), rel=1e-9)


def test_copies_of_weights_stand_beside_them_or_in_their_place():
    usual, weights = memory("as-weights")["weights"], matrices()
    assert memory("fp8-current")["weights"] - usual == 2.0 * weights
    assert memory("fp8-current", architecture="blackwell")["weights"] - usual == weights
    assert memory("mxfp8", architecture="blackwell")["weights"] - usual == pytest.approx(2 * 1.03125 * weights)
    assert memory("fp8-current", gathered="fp8")["weights"] == usual
    assert memory("fp8-current", gathered="fp8", architecture="blackwell")["weights"] == usual - weights
    assert memory("float8")["weights"] == usual
    for kind in ("master", "optimizer"):  # as wide as before
        assert memory("fp8-current")[kind] == memory("as-weights")[kind]


def test_fully_sharded_weights_are_cast_in_each_pass_and_kept_by_nobody():
    held, usual = memory("fp8-current", sharding="zero-3"), memory("as-weights", sharding="zero-3")
    assert held["weights"] == usual["weights"]
    narrow = memory("float8", sharding="zero-3", gathered="fp8")
    assert narrow["unsharded weights"] < usual["unsharded weights"]
    work = divided("fp8-current", sharding="zero-3")[0]
    assert any("weight.cast" in getattr(one, "name", "") for one in work.parts[0][1].forward)


@pytest.mark.parametrize("sharding", ["zero-1", "zero-3"])
def test_weights_that_travel_narrow_are_half_as_many_bytes(sharding):
    def bytes_of(gathered):
        work = divided("float8", sharding=sharding, gathered=gathered)[0]
        if work.units:
            return sum(work.ends[0].gathered(unit.bucket) for unit in work.units[0])
        from simperf.training.pipelined.work import layer_buckets

        return sum(work.ends[0].gathered(one) for one in layer_buckets(0, work.layers(0, 0), 1e9, 4.0))

    assert bytes_of("as-products") - bytes_of("fp8") == matrices()


def test_wide_blocks_are_those_at_the_ends():
    work = divided("fp8-current", wide_first=1, wide_last=2)[0]
    assert [bool(layer.scaled) for layer in work.parts[0]] == [False, False, True, False, False, False]
    usual = divided("as-weights")[0]
    assert work.parts[0][1].forward == usual.parts[0][1].forward
    assert work.parts[0][-1].forward == usual.parts[0][-1].forward


def test_frozen_weights_are_cast_once_for_all():
    """Adapters stay in bf16: no product for the gradient of a frozen weight, no cast for it, and inputs wide."""
    model = Dimensions(SMALL, replace(FUSED, products="fp8-current"), "bf16-master", adapters=Adapters(rank=8))
    wide = replace(model, kernels=FUSED)
    made, usual = (divide(one, Layout(dp=4), ModelParallel(), 8, architecture="hopper") for one in (model, wide))
    block, other = made.parts[0][1], usual.parts[0][1]
    assert block.kept == other.kept
    assert not any("weights." in getattr(one, "name", "") for one in made.ends[0].begin)
    casts = [one for one in (*block.forward, *block.backward) if getattr(one, "name", "").endswith(".cast")]
    assert len(casts) == 8
    assert all(one.nbytes_written == one.nbytes_read / 2 for one in casts)
    pacing, layout = pacing_of(Layout(dp=4), ModelParallel()), Layout(dp=4)
    held, less = (work_memory(one, layout, pacing)[0].peak.held["weights"] for one in (made, usual))
    assert held - less == 2.0 * matrices()
    assert step("fp8-current", **{"program.lora_rank": 8}) > 0.0


@pytest.mark.parametrize(
    ("products", "options", "told"),
    [
        ("fp8-current", {"on": "dgx-a100"}, "as-weights, or GPUs with fp8"),
        ("mxfp8", {}, "as-weights, float8.*fp8-block, or GPUs with fp4"),
        ("nvfp4", {}, "or GPUs with fp4"),
        ("as-weights", {"program.wide_first_blocks": 1}, "has no effect"),
        ("fp8-current", {"program.wide_last_blocks": 4}, "has no effect"),
        ("fp8-current", {"program.wide_last_blocks": -1}, "cannot be negative"),
        ("mxfp8", {"on": "dgx-b200", "strategy": ModelParallel(exchange=DataExchange(gathered="fp8"))}, "fp8-current"),
        ("as-weights", {"strategy": ModelParallel(exchange=DataExchange(gathered="fp8"))}, "fp8-delayed"),
        ("fp8-current", {"program.lora_rank": 8, "program.frozen_precision": "nf4"}, "one narrow precision"),
        (
            "fp8-current",
            {"strategy": ModelParallel(exchange=DataExchange(gathered="fp8")), "layout": Layout(dp=2)},
            "every rank has all weights",
        ),
    ],
)
def test_what_has_no_units_or_no_effect_is_refused(products, options, told):
    with pytest.raises(InputError, match=f"(?s){told}"):
        step(products, **options)
