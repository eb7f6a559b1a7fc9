"""Matrix products in parts: the bytes and the arithmetic of whole ones, and communication beside them."""

from dataclasses import replace

import pytest

from simperf import Layout, ModelParallel, Transformer, train
from simperf.collectives.nccl_blocks import memory_traffic
from simperf.errors import InputError
from simperf.workload.layer_kernels import LayerKernels
from simperf.workload.op import Op
from simperf.workload.transformers.parallel import rank_passes
from simperf.workload.transformers.passes import Await, Sync

MODEL = Transformer(layers=1, hidden=8192, heads=64, kv_heads=8, ffn=28672, vocabulary=32000, sequence=8192)
KERNELS = LayerKernels(norm="fused", projections="separate", gathered_inputs="kept")
PARTS = {"collectives": (4, "collective"), "ring": (8, "ring")}


def passes(parts=1, exchange="collective", **more):
    chosen = replace(KERNELS, product_parts=parts, parts_exchange=exchange)
    return rank_passes(MODEL, chosen, tp=8, sequence_parallel=True, **more)


def sent(items):
    """Bytes that each rank sends to others."""
    share = {"copy": 1.0, "all-reduce": 2 * 7 / 8}
    return sum(one.nbytes * share.get(one.name, 7 / 8) for one in items if isinstance(one, Sync))


@pytest.mark.parametrize(("parts", "exchange"), PARTS.values(), ids=PARTS)
@pytest.mark.parametrize("recompute", ["none", "selective", "selective-op", "full"])
@pytest.mark.parametrize("overlap", ["beside", "alone"])
def test_parts_send_what_whole_products_do_and_compute_as_much(parts, exchange, recompute, overlap, monkeypatch):
    monkeypatch.setattr(f"{__name__}.KERNELS", replace(KERNELS, gradient_overlap=overlap))
    whole, cut = passes(recompute=recompute), passes(parts, exchange, recompute=recompute)
    for name in ("forward", "backward", "input_gradients", "weight_gradients"):
        for layer in ("embedding", "block", "head"):
            one, other = (getattr(getattr(each, layer), name) for each in (whole, cut))
            assert sent(other) == pytest.approx(sent(one), rel=1e-12), (layer, name)
            gemms = [sum(op.flops for op in items if isinstance(op, Op) and op.gemm) for items in (one, other)]
            assert gemms[1] == pytest.approx(gemms[0], rel=1e-12)
            begun = [item.label for item in other if isinstance(item, Sync) and not item.waits]
            assert sorted(begun) == sorted(item.label for item in other if isinstance(item, Await))
    assert cut.block.activations == whole.block.activations


def test_one_part_is_the_whole_product():
    assert passes(1) == passes()


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({"product_parts": 4, "sequence_parallel": False}, "product_parts"),
        ({"product_parts": 3}, "product_parts"),
        ({"product_parts": 4, "parts_exchange": "ring"}, "product_parts"),
        ({"parts_exchange": "ring"}, "product_parts"),
    ],
)
def test_parts_without_effect_or_that_do_not_divide_are_refused(given, key):
    shared = given.pop("sequence_parallel", True)
    with pytest.raises(InputError) as caught:
        rank_passes(MODEL, replace(KERNELS, **given), tp=8, sequence_parallel=shared)
    assert key in {one.key for one in caught.value.problems}


def run(parts=1, exchange="collective", **more):
    return train(
        MODEL,
        on="dgx-h100",
        layout=Layout(tp=8),
        strategy=ModelParallel(sequence_parallel=True, recompute="full"),
        precision="bf16-master",
        batch=2,
        set={
            "program.norm_kernels": "fused",
            "program.product_parts": parts,
            "program.parts_exchange": exchange,
            "program.steps": 1,
            **more,
        },
    )


@pytest.mark.parametrize(("parts", "exchange"), PARTS.values(), ids=PARTS)
def test_parts_hide_communication_and_the_kinds_of_time_add_up(parts, exchange):
    whole, cut = run(), run(parts, exchange)
    told = [{name: one.value for name, one in each.metrics.items()} for each in (whole, cut)]
    hidden, exposed = ([one[f"stage 0: {kind} tensor"] for one in told] for kind in ("hidden", "exposed"))
    assert hidden[1] > hidden[0]
    assert exposed[1] < exposed[0]
    assert told[1]["stage 0: kernels"] > told[0]["stage 0: kernels"], "smaller products are less efficient"
    for one in told:
        kinds = [value for name, value in one.items() if name.startswith("stage 0: ") and ": hidden" not in name]
        assert sum(kinds) == pytest.approx(one["time per step"], rel=1e-9)
    exact = run(parts, exchange, **{"program.exact": "yes"})
    assert exact.metrics["time per step"].value == pytest.approx(told[1]["time per step"], rel=1e-9)


def test_copies_of_a_ring_hold_no_multiprocessor_and_move_a_byte_in_and_out_of_memory():
    assert memory_traffic("copy", 1e6, 8) == 2e6
    ring, collectives = (run(*PARTS[name]).metrics for name in ("ring", "collectives"))
    assert collectives["stage 0: slowed"].value > 0.0
    assert "stage 0: slowed" not in ring or ring["stage 0: slowed"].value < collectives["stage 0: slowed"].value
