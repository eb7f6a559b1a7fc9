"""Shards find new homes, and their bytes take the links' time."""

import pytest

from simperf.engine.simulation import Simulation
from simperf.errors import InputError
from simperf.execution.session import Session
from simperf.hardware import Catalog
from simperf.training.servers.shards import Move, move_shards, place_shards, take_over

GPUS = ("gpu0", "gpu1", "gpu2")


def test_shards_lie_evenly_with_replicas_next_door():
    shards = place_shards(60.0, GPUS, shards=6, replicas=1)
    assert [shard.home for shard in shards] == [*GPUS, *GPUS]
    assert [shard.replicas for shard in shards[:3]] == [("gpu1",), ("gpu2",), ("gpu0",)]
    assert {shard.nbytes for shard in shards} == {10.0}


def test_without_replicas_the_store_gives_the_shards_to_those_with_the_least():
    shards = place_shards(60.0, GPUS, shards=6)
    after, moves = take_over(shards, ["gpu1"], store="gpu3")
    assert moves == [Move("shard1", "gpu3", "gpu0", 10.0), Move("shard4", "gpu3", "gpu2", 10.0)]
    assert [shard.home for shard in after] == ["gpu0", "gpu0", "gpu2", "gpu0", "gpu2", "gpu2"]
    assert sum(shard.nbytes for shard in after) == 60.0


def test_a_replica_takes_over_where_it_lies():
    after, moves = take_over(place_shards(60.0, GPUS, shards=6, replicas=1), ["gpu1"])
    assert [(move.target, move.nbytes) for move in moves] == [("gpu2", 0.0)] * 2
    assert [shard.replicas for shard in after] == [(), (), ("gpu0",)] * 2


def test_two_lost_servers_and_a_second_take_over():
    once, _ = take_over(place_shards(60.0, GPUS, shards=6, replicas=2), ["gpu0", "gpu1"])
    assert {shard.home for shard in once} == {"gpu2"}
    with pytest.raises(InputError, match="no server is left"):
        take_over(once, GPUS)


def test_moving_takes_the_time_of_the_shared_link():
    """Two shards of 16 GB leave the same store over its one link of 16 GB/s."""
    m = Session(Simulation(Catalog.load().machine("book-4gpu")))
    moves = [Move("a", "gpu3", "gpu0", 16e9), Move("b", "gpu3", "gpu2", 16e9), Move("c", "gpu0", "gpu0", 0.0)]
    took = []

    def program():
        took.append((yield from move_shards(m, moves)))
        took.append((yield from move_shards(m, moves[2:])))

    assert m.play(program()) == pytest.approx(2.0, rel=1e-9)
    assert took == [pytest.approx(2.0, rel=1e-9), 0.0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (((), 1, 0), "one server or more"),
        ((GPUS, 2, 0), "3 servers need as many shards"),
        ((GPUS, 3, 3), "from 0 to 2 replicas"),
        ((("gpu0", "gpu0"), 3, 0), "each named once"),
    ],
)
def test_what_cannot_be_placed(arguments, words):
    servers, shards, replicas = arguments
    with pytest.raises(InputError, match=words):
        place_shards(1.0, servers, shards=shards, replicas=replicas)


def test_a_shard_without_replica_and_store_is_lost():
    with pytest.raises(InputError, match="shard1 had no replica"):
        take_over(place_shards(1.0, GPUS, shards=3), ["gpu1"])
