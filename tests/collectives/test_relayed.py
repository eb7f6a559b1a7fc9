"""Exchanges of tokens over servers and ranks: copies counted, bytes conserved, multiprocessors, measured times."""

import csv
import gzip
import os
import statistics
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from simperf.collectives.executors.channel_flows import play_channels
from simperf.collectives.nccl import Tuner
from simperf.collectives.relayed import TokenKernel, relayed_channels
from simperf.errors import InputError
from simperf.hardware import Catalog, build_machine
from simperf.workload.token_copies import TokenCopies
from tests.collectives.test_exchange import moved

FABRIC = {"type": "rail", "link": "infiniband-ndr", "switch": "infiniband-ndr-switch"}
TABLES = Path(os.environ.get("SIMPERF_TRUTH", Path(__file__).parents[3] / "shared" / "truth")) / "llm" / "kernels"
TWO = {"kind": "cluster", "server": "dgx-h100", "count": 2, "fabric": FABRIC}


def placed(machine, nranks):
    built = build_machine(machine, Catalog.load())
    return Tuner(built, built.gpus[:nranks], "all-to-all").best(64e6).placed


@pytest.mark.parametrize("copies", [TokenCopies(64, 6), TokenCopies(64, 6, 8, 3), TokenCopies(16, 2, 4, 1)])
@pytest.mark.parametrize("places", [2, 4, 8, 16])
def test_copies_are_those_of_tokens_that_choose_at_random(copies, places):
    draw, tokens = np.random.default_rng(1), 20_000
    order = draw.random((tokens, copies.experts))
    if copies.groups:
        chosen = draw.random((tokens, copies.groups)).argsort(axis=1).argsort(axis=1) < copies.groups_chosen
        order[~np.repeat(chosen, copies.experts // copies.groups, axis=1)] = 2.0
    places_of = order.argsort(axis=1)[:, : copies.chosen] // (copies.experts // places)
    counted = np.mean([len(set(row)) for row in places_of.tolist()])
    assert places * copies.reach(copies.experts // places) == pytest.approx(counted, rel=0.01)


def test_copies_of_unequal_experts_are_those_of_tokens_that_choose_each_by_its_weight():
    """Tokens that choose each expert by itself, of which those count that have chosen as many as they should."""
    draw, weights = np.random.default_rng(1), np.array([8.0, 4.0, 2.0, 2.0, 1.0, 1.0, 0.5, 0.25])
    odds = 0.6 * weights
    choices = draw.random((400_000, 8)) < odds / (1.0 + odds)
    choices = choices[choices.sum(axis=1) == 3]
    copies = TokenCopies(8, 3, shares=tuple(choices.mean(axis=0).tolist()))
    for parts, places in (([[0], [1], [2], [3]], 4), ([[0, 3], [1, 2]], 4), ([[0], [5]], 8)):
        each = 8 // places
        for part, found in zip(parts, copies.reaches(parts, places), strict=True):
            own = [place * each + index for place in part for index in range(each)]
            assert found == pytest.approx(choices[:, own].any(axis=1).mean(), abs=0.004)


def test_equal_shares_are_those_without_any_and_one_that_all_have_is_always_reached():
    even, shared = TokenCopies(64, 6), TokenCopies(64, 6, shares=(6 / 64,) * 64)
    places = [[one] for one in range(8)]
    assert shared.reaches(places, 8) == pytest.approx(even.reaches(places, 8))
    first = TokenCopies(4, 2, shares=(1.0, 0.5, 0.25, 0.25))
    assert first.reaches([[0], [1], [2, 3]], 4) == pytest.approx((1.0, 0.5, 0.5))
    assert TokenCopies(4, 1, shares=(1.0, 0.0, 0.0, 0.0)).reaches([[0], [1]], 2) == (1.0, 0.0)


@pytest.mark.parametrize("name", ["dispatch", "combine"])
def test_unequal_ranks_are_sent_unequal_bytes_and_the_fullest_bounds_all(name):
    shares = tuple(np.repeat([12.0, 6.0, 4.0, 2.0, 1.0, 1.0, 1.0, 1.0], 8) / 28 * 6 / 8)
    plan, copies, nbytes = placed({"name": "dgx-h100"}, 8), TokenCopies(64, 6, shares=shares), 64e6
    channels = relayed_channels(plan, name, nbytes, TokenKernel(copies))
    found = moved(channels)
    for place, reached in enumerate(copies.reaches([[one] for one in range(8)], 8)):
        way = f"nvswitch0>gpu{place}" if name == "dispatch" else f"gpu{place}>nvswitch0"
        inside = sum(nbytes for link, nbytes in found.items() if link.replace("n0/", "").startswith(way))
        assert inside == pytest.approx(7 * reached * nbytes / plan.transport.efficiency)
    assert len({round(flow.time, 12) for flow in channels.flows}) == 1, "all flows end together"
    even = relayed_channels(plan, name, nbytes, TokenKernel(TokenCopies(64, 6)))
    assert channels.time > even.time


def test_all_experts_are_always_reached_and_one_as_often_as_it_is_chosen():
    for copies in (TokenCopies(64, 6), TokenCopies(64, 6, 8, 3)):
        assert copies.reach(64) == pytest.approx(1.0)
        assert 64 * copies.reach(1) == pytest.approx(6.0)


@pytest.mark.parametrize("name", ["dispatch", "combine"])
def test_bytes_leave_a_rank_once_for_each_server_and_each_rank(name):
    plan, kernel, nbytes = placed(TWO, 16), TokenKernel(TokenCopies(64, 6, 8, 4)), 64e6
    channels = relayed_channels(plan, name, nbytes, kernel)
    on_wire = nbytes / plan.transport.efficiency
    found = moved(channels)
    for gpu in plan.placement.nodes:
        inside = sum(nbytes for link, nbytes in found.items() if link.startswith(f"{gpu}>") and "nvswitch" in link)
        assert inside == pytest.approx(7 * 2 * kernel.copies.reach(4) * on_wire)
    between = sum(nbytes for link, nbytes in found.items() if ">rail" in link)
    assert between == pytest.approx(16 * kernel.copies.reach(32) * on_wire)
    # a NIC carries 50 GB/s
    assert play_channels(channels, 16).time > on_wire * kernel.copies.reach(32) / 50e9


def test_inside_of_a_server_there_is_nvlink_alone():
    kernel = TokenKernel(TokenCopies(64, 6))
    channels = relayed_channels(placed({"name": "dgx-h100"}, 8), "dispatch", 64e6, kernel)
    assert len(channels.flows) == 1


def test_few_multiprocessors_carry_less_and_many_not_more_than_nvlink():
    plan, copies = placed({"name": "dgx-h100"}, 8), TokenCopies(256, 8)
    times = [relayed_channels(plan, "combine", 1e9, TokenKernel(copies, blocks)).time for blocks in (4, 8, 32, 64)]
    assert times[0] == pytest.approx(2 * times[1], rel=0.01)
    assert times[2] == times[3] < times[1]


def test_devices_without_these_kernels_are_refused():
    with pytest.raises(InputError, match=r"not known.*hopper, blackwell"):
        relayed_channels(placed({"name": "dgx-a100-80gb"}, 8), "dispatch", 1e6, TokenKernel(TokenCopies(8, 2)))


@pytest.mark.skipif(not TABLES.is_dir(), reason="the measured tables are not at hand (SIMPERF_TRUTH)")
@pytest.mark.parametrize(("gpu", "server"), [("h100", "dgx-h100"), ("h200", "dgx-h200"), ("b200", "dgx-b200")])
@pytest.mark.parametrize(("name", "most"), [("dispatch", 0.09), ("combine", 0.11)])
def test_measured_kernels_that_nothing_was_fitted_to_are_met(gpu, server, name, most):
    with gzip.open(TABLES / f"{gpu}_sxm_deepep.csv.gz", "rt") as file:
        rows = [row for number, row in enumerate(csv.DictReader(file)) if number // 6 % 2]
    plan, errors = placed({"name": server}, 8), []
    for row in islice(rows, 0, None, 3):
        hidden, tokens, chosen = (int(row[key]) for key in ("hidden_size", "num_token", "num_topk"))
        width = 2.0 if name == "combine" else 1.0 + 4 / 128  # dispatched in fp8, with a factor for each 128
        kernel = TokenKernel(TokenCopies(int(row["num_experts"]), chosen), int(row[f"{name}_sms"]))
        time = relayed_channels(plan, name, tokens * (width * hidden + 12.0 * chosen), kernel).time
        errors.append(abs(time * 1e6 / float(row[f"{name}_transmit_us"]) - 1.0))
    print(
        f"{gpu} {name}: median {statistics.median(errors):.1%}, mean {statistics.mean(errors):.1%}, {max(errors):.1%}"
    )
    assert statistics.median(errors) < most
