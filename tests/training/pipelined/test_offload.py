"""What ranks hold in the memory of their hosts: bytes that go there and back, time, memory, and what is refused."""

from dataclasses import replace

import pytest

from simperf import Layout, ModelParallel, Transformer, train
from simperf.errors import DeviceMemoryError, InputError
from simperf.memory import ChunkMemory, LayerMemory, stage_memory
from simperf.training.offload import Offload
from simperf.training.pipelined.fitting_changes import Divided
from simperf.training.pipelined.host_memory import held_on_host, offloaded_layers
from simperf.training.replica import Dimensions
from simperf.workload.layer_kernels import LayerKernels

MODEL = Transformer(layers=4, hidden=2048, heads=16, kv_heads=4, ffn=5632, vocabulary=4096, sequence=4096)
FUSED = LayerKernels(norm="fused", rotary="fused", activation="fused")


def run(set, *, dp=1, pp=1, batch=2, on="dgx-h100", **options):
    more = {"program.steps": 2, "program.norm_kernels": "fused", **set}
    layout = Layout(dp=dp, pp=pp, sharding="zero-1" if dp > 1 else "none")
    strategy = ModelParallel(**options)
    return train(MODEL, on=on, layout=layout, strategy=strategy, precision="bf16-master", batch=batch, set=more)


def value(result, name):
    return result.metrics[name].value


def divided(offload, *, dp=1, pp=1, batch=2):
    return Divided(Dimensions(MODEL, FUSED), Layout(dp=dp, pp=pp), ModelParallel(), batch, offload=offload)


def copies(result, name):
    return [one for one in result.spans if one.name == name]


def test_activations_go_to_the_host_and_come_back_once_each():
    result = run({"program.offload_layers": 3}, batch=4)
    out, back = copies(result, "activations to host"), copies(result, "activations from host")
    assert len(out) == len(back) == 2 * 4 * 3  # steps, micro-batches, blocks
    for sent, came in zip(sorted(one.end for one in out), sorted(one.start for one in back), strict=True):
        assert came >= sent


@pytest.mark.parametrize("pp", [1, 2])
def test_what_is_hidden_and_exposed_is_the_time_of_the_copies(pp):
    plain, away = run({}, batch=4, pp=pp), run({"program.offload_layers": 2}, batch=4, pp=pp)
    assert value(away, "time per step") >= value(plain, "time per step")
    layer = divided(Offload()).work().layers(0, 0)[1].activations
    moved = value(away, "stage 0: exposed host") + value(away, "stage 0: hidden host")
    alone = 2 * 2 * 4 * layer / 63.0e9  # not faster than the link: there and back, blocks, micro-batches
    assert alone < moved < 2 * alone
    assert value(away, "stage 0: kernels") == pytest.approx(value(plain, "stage 0: kernels"))


def test_a_faster_link_hides_more():
    narrow, wide = (run({"program.offload_layers": 3}, on=on) for on in ("dgx-h100", "gb200-nvl72"))
    assert value(wide, "stage 0: exposed host") < 0.5 * value(narrow, "stage 0: exposed host")


def test_activations_of_two_blocks_are_on_the_gpu():
    layers = [LayerMemory(name, kept) for name, kept in (("embedding", 1.0), *[("block", 8.0)] * 4, ("head", 2.0))]
    found = stage_memory([("F", 0, 0), ("B", 0, 0)], (ChunkMemory(offloaded_layers(layers, [1, 2, 3])),), {})
    assert max(one.held.get("activations", 0.0) for one in found.moments) == 1.0 + 2 * 8.0
    assert divided(Offload(layers=3)).peak() < divided(Offload()).peak()


def test_the_host_holds_activations_in_flight_and_states():
    work = divided(Offload(layers=2), pp=2, batch=8).work()
    layer = work.layers(0, 0)[1].activations
    assert held_on_host(work, 0) == 2 * 2 * layer
    assert held_on_host(work, 1) == 2 * layer
    states = divided(Offload(states="host")).work()
    assert held_on_host(states, 0) == MODEL.parameters * (12 + 2)
    assert held_on_host(divided(Offload(states="streamed")).work(), 0) == MODEL.parameters * 12
    found = divided(Offload(states="host")).memory()[0].peak.held
    assert "optimizer" not in found
    assert "master" not in found


def test_an_update_on_the_host_in_one_piece_is_a_copy_an_update_and_a_copy():
    set = {"program.offload_states": "host", "program.offload_piece": 10**9, "frontend.use": "cuda"}
    result = run(set)
    (out, *_), (back, *_) = copies(result, "gradients to host"), copies(result, "weights from host")
    updates = [one for one in result.spans if one.name == "adam on host"]
    took = updates[0].end - updates[0].start
    bandwidth = 8 * 38.4e9
    assert took == pytest.approx(MODEL.parameters * (12 + 2 + 2 * 14) / (0.67 * bandwidth), rel=1e-3)
    assert out.end <= updates[0].start
    assert updates[0].end <= back.start
    whole = back.end - out.start
    assert value(result, "stage 0: exposed host") == pytest.approx(whole, rel=0.01)


@pytest.mark.parametrize("states", ["host", "streamed"])
def test_pieces_overlap(states):
    whole, pieces = (
        run({"program.offload_states": states, "program.offload_piece": size}) for size in (10**9, 20_000_000)
    )
    assert value(pieces, "stage 0: exposed host") < 0.8 * value(whole, "stage 0: exposed host")


def test_ranks_share_the_memory_of_their_host():
    set = {"program.offload_states": "host"}
    one, two = (run(set, on="dgx-h100", dp=dp, batch=2) for dp in (1, 2))
    alone, shared = (value(each, "stage 0: exposed host") for each in (one, two))
    assert shared == pytest.approx(alone, rel=0.2)  # half of the weights each, at half of the rate
    assert value(one, "host memory") == pytest.approx(value(two, "host memory"), rel=1e-6)


@pytest.mark.parametrize(
    ("set", "options", "words"),
    [
        ({"program.offload_layers": 5}, {}, "4 at most"),
        ({"program.offload_layers": -1}, {}, "cannot be negative"),
        ({"program.offload_piece": 10**6}, {}, "states stay on the GPU"),
        ({"program.offload_layers": 1}, {"schedule": "zb-h1", "pp": 2}, "gradients of weights alone"),
    ],
)
def test_what_has_no_meaning_is_refused(set, options, words):
    with pytest.raises(InputError, match=words):
        run(set, **options)


def test_weights_that_ranks_share_and_whole_models_are_refused():
    given = {"on": "dgx-h100", "precision": "bf16-master", "batch": 8, "set": {"program.offload_layers": 1}}
    with pytest.raises(InputError, match="host's memory"):
        train(MODEL, layout=Layout(dp=8, sharding="zero-3"), strategy=ModelParallel(), **given)
    with pytest.raises(InputError, match="no layout divides the model"):
        train(MODEL, **given)


def test_a_host_that_is_too_small_is_refused():
    large = replace(MODEL, layers=30, hidden=8192, heads=64, ffn=28672)
    set = {"program.offload_states": "host", "program.norm_kernels": "fused"}
    given = {"layout": Layout(dp=8), "strategy": ModelParallel(recompute="full"), "precision": "bf16-master"}
    with pytest.raises(DeviceMemoryError, match="cpu0 has"):
        train(large, on="gb200-nvl72", batch=8, set=set, **given)


def test_pieces_that_would_be_too_many_events_are_refused_before_any_is_played():
    with pytest.raises(InputError, match="offload_piece: about") as found:
        run({"program.offload_states": "streamed", "program.offload_piece": 1, "run.force": False})
    least = found.value.problems[0].expected.split(";")[0].removeprefix("at least ").replace(",", "")
    assert 100 < int(least) < 10_000
