"""What goes over the wire, and the bandwidth at which compression stops paying."""

import pytest

from simperf.errors import InputError, UnknownNameError
from simperf.training.servers.compression import CODECS, DENSE, codec

S = 104857600.0


@pytest.mark.parametrize(
    ("name", "ratio", "share"),
    [
        ("none", 1.0, 1.0),
        ("top-k", 0.01, 0.02),
        ("random-k", 0.01, 0.02),
        ("8-bit", 1.0, 0.25 + 1 / 256),
        ("1-bit", 1.0, 1 / 32 + 1 / 512),
    ],
)
def test_bytes_on_the_wire(name, ratio, share):
    """Top-k sends a value and an index; the others a scale or two levels a block."""
    assert codec(name, ratio=ratio).wire(S) == pytest.approx(share * S)


def test_everything_by_top_k_is_twice_the_dense_gradient():
    assert codec("top-k", ratio=1.0).wire(S) == 2 * S >= DENSE.wire(S)


def test_sparse_sums_grow_up_to_the_dense_size():
    sparse = codec("top-k", ratio=0.01)
    assert sparse.back(S, 4) == 4 * sparse.wire(S)
    assert sparse.back(S, 64) == S
    assert codec("8-bit").back(S, 64) == codec("8-bit").wire(S)


def test_a_free_codec_moves_nothing_through_memory_and_the_same_over_the_wire():
    for name in CODECS:
        one = codec(name)
        assert one.free().wire(S) == one.wire(S)
        assert one.free().encoding(S) == one.free().decoding(S) == 0.0
        assert (one.encoding(S) > one.wire(S)) == (name != "none")


def test_small_gradients_go_as_they_are():
    for name in CODECS:
        one = codec(name, smallest=S)
        assert one.wire(S - 4) == one.back(S - 4, 1) == S - 4
        assert one.encoding(S - 4) == one.decoding(S - 4) == 0.0
        assert one.wire(S) == codec(name).wire(S)
        assert one.encoding(S) == codec(name).encoding(S)
    with pytest.raises(InputError, match="0 or more"):
        codec("top-k", smallest=-1.0)


@pytest.mark.parametrize("ratio", [0.0, -1.0, 1.5, float("nan")])
def test_a_ratio_is_a_share(ratio):
    with pytest.raises(InputError, match="share"):
        codec("top-k", ratio=ratio)


def test_unknown_codecs_name_the_nearest():
    with pytest.raises(UnknownNameError, match="top-k"):
        codec("topk")


@pytest.mark.parametrize("name", ["8-bit", "1-bit", "top-k", "random-k"])
def test_everything_free_but_the_wire(star, with_servers, name):
    """Synchronous, one server: all in, all out; the answer is encoded again."""
    session = with_servers(star(4), steps=1, weights=S, compression=name, free_codec=True)
    one = codec(name)
    expected = 4 * one.wire(S) / 50e9 + 4 * one.back(S, 4) / 50e9 + 1e-6
    assert session.now == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", ["8-bit", "1-bit", "top-k", "random-k"])
def test_it_pays_below_the_flip_point_and_not_above(star, with_servers, name):
    """Two workers and a server: the flip is where the saved wire time equals the time of the codec."""
    one, gpu, memory = codec(name), 900e9, 4e9
    sparse = one.sparse
    saved = 2 * (2 * S - one.wire(S) - one.back(S, 2))
    server = (2 * one.decoding(S) + (0.0 if sparse else one.encoding(S))) / memory
    worker = (one.encoding(S) + one.decoding(S)) / gpu
    flip = saved / (server + worker)
    for factor, pays in ((0.6, True), (1.7, False)):
        machine = star(2, bandwidth=f"{flip * factor} B/s", latency="0 s")
        dense = with_servers(machine, steps=1, weights=S).now
        packed = with_servers(machine, steps=1, weights=S, compression=name, server_memory=memory).now
        assert (packed < dense) == pays


def test_top_k_of_everything_never_beats_dense(star, with_servers):
    dense = with_servers(star(4), steps=2, weights=S).now
    assert with_servers(star(4), steps=2, weights=S, compression="top-k", ratio=1.0, free_codec=True).now >= dense


def test_keys_below_the_smallest_cost_a_server_no_codec(star, with_servers):
    """One large key and one small one: the small one crosses dense, and is not decoded."""
    plan = {"steps": 1, "layers": 2, "weights": S, "sizes": [1.0, 15.0], "compression": "1-bit"}
    one, small, large = codec("1-bit"), S / 16, S * 15 / 16
    session = with_servers(star(2), dense_below=small + 1, **plan)
    assert session.metrics["bytes carried"][0] == pytest.approx(4 * (small + one.wire(large)))
    free = with_servers(star(2), dense_below=2 * S, server_memory=1e6, **plan)
    assert free.now == pytest.approx(with_servers(star(2), steps=1, layers=2, weights=S, sizes=[1.0, 15.0]).now)


def test_a_run_without_compression_is_played_beside_one_with_it(star, with_servers):
    """The ratio is that of the two runs, of all their steps; compression itself changes nothing by that."""
    plan = {"steps": 3, "total": 30, "weights": S}
    dense = with_servers(star(4), **plan).metrics
    alone = with_servers(star(4), compression="8-bit", free_codec=True, **plan)
    beside = with_servers(star(4), compression="8-bit", free_codec=True, beside_dense=True, **plan)
    assert beside.now == alone.now
    ratio = alone.metrics["run time"][0] / dense["run time"][0]
    assert beside.metrics["dense: time per step"] == dense["time per step"]
    assert beside.metrics["time relative to dense"][0] == pytest.approx(ratio, rel=1e-12)
    assert ratio < 1
    assert "time relative to dense" not in alone.metrics


def test_without_a_whole_run_the_simulated_one_is_compared(star, with_servers):
    session = with_servers(star(4), steps=2, weights=S, beside_dense=True)
    assert session.metrics["time relative to dense"][0] == pytest.approx(1.0, rel=1e-12)
