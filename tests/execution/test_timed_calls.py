"""Calls of a collective through torch as benchmarks time them (simperf.execution.timed_calls)."""

from dataclasses import replace

import numpy as np
import pytest

import simperf
from simperf.collectives.calls import Call
from simperf.collectives.nccl import Tuner
from simperf.collectives.settings import HOSTED, NcclSettings
from simperf.engine.simulation import Simulation
from simperf.errors import InputError
from simperf.execution import FrontendPart
from simperf.execution.process_group import ProcessGroup
from simperf.execution.ranks import Rank
from simperf.execution.session import Session
from simperf.execution.timed_calls import median_lag, timed_call, torch_call_time
from simperf.hardware import Catalog, build_cluster

CATALOG = Catalog.load()
H100 = CATALOG.machine("dgx-h100")
HOST = FrontendPart(name="mine", title="", sources={}, launch=5e-6, collective=25e-6, profiling=15e-6)
SIZES = (8.0, 2.0**16, 2.0**20, 2.0**24, 2.0**28)


def kernel(nbytes, *, ranks=8, collective="all-reduce"):
    """Time of the kernels alone [s]."""
    return Tuner(H100, H100.gpus[:ranks], collective, NcclSettings(timing="graph")).best(nbytes).time


def timed(nbytes, timing, *, ranks=8, collective="all-reduce", frontend=HOST, **options):
    settings = NcclSettings(timing=timing)
    return torch_call_time(H100, H100.gpus[:ranks], collective, nbytes, settings, frontend=frontend, **options)


@pytest.mark.parametrize("collective", ["all-reduce", "all-gather", "all-to-all"])
@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_between_events_the_host_and_the_kernel_add_up(collective, ranks):
    for nbytes in SIZES:
        alone = kernel(nbytes, ranks=ranks, collective=collective)
        found = timed(nbytes, "torch", ranks=ranks, collective=collective)
        assert found == pytest.approx(HOST.collective + alone, rel=1e-9)


@pytest.mark.parametrize("ranks", [3, 4, 8])
def test_in_a_profile_a_rank_ahead_of_another_waits_for_the_other_host(ranks):
    """Its kernels last as long as the host's calls, until they are longer than these."""
    for nbytes in SIZES:
        host = HOST.collective + HOST.profiling
        assert timed(nbytes, "profiler", ranks=ranks) == pytest.approx(max(host, kernel(nbytes, ranks=ranks)), rel=1e-9)


def test_in_a_profile_of_two_ranks_the_kernels_are_alone_in_the_median():
    for nbytes in SIZES:
        assert timed(nbytes, "profiler", ranks=2) == pytest.approx(kernel(nbytes, ranks=2), rel=1e-9)


@pytest.mark.parametrize("timing", HOSTED)
def test_ranks_that_do_alike_are_as_those_played_one_by_one(timing):
    m = Session(Simulation(H100), profile=HOST)
    nodes, settings = H100.gpus[:4], NcclSettings(timing=timing)
    members = [Rank(rank, m.simulation.device(node)) for rank, node in enumerate(nodes)]
    group = ProcessGroup(m, nodes, members, algorithm="nccl", options=settings)
    found = []

    def program():
        found.append((yield from timed_call(m, group, "all-reduce", 2.0**20)))

    m.play(program())
    assert found == [pytest.approx(timed(2.0**20, timing, ranks=4), rel=1e-12)]


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 8, 64])
def test_the_median_lag_is_that_of_even_independent_beginnings(ranks):
    begins = np.random.default_rng(1).random((20_001, ranks))
    lags = begins[:, 1:].max(axis=1, initial=0.0) - begins[:, 0]
    drawn = max(0.0, float(np.median(lags))) if ranks > 1 else 0.0
    assert median_lag(ranks) == pytest.approx(drawn, abs=0.02)


def test_one_rank_alone_and_several_servers():
    assert timed(2.0**20, "torch", ranks=1) == pytest.approx(HOST.collective, rel=1e-3)
    two = build_cluster("dgx-h100", 2, link="infiniband-ndr")
    settings = NcclSettings(timing="torch")
    alone = Tuner(two, two.gpus, "all-reduce", NcclSettings(timing="graph")).best(2.0**20).time
    found = torch_call_time(two, two.gpus, "all-reduce", 2.0**20, settings, frontend=HOST)
    assert found == pytest.approx(HOST.collective + alone, rel=1e-9)


def test_other_traffic_makes_the_kernels_longer():
    traffic = [(H100.gpus[0], H100.gpus[1], 400e9)]
    (row,) = simperf.collective("all-reduce", on=H100, sizes=["256M"], timing="graph", background=traffic)
    assert row.time > 1.05 * kernel(2.0**28)
    assert timed(2.0**28, "torch", background=traffic) == pytest.approx(HOST.collective + row.time, rel=1e-9)
    (row,) = simperf.collective("all-reduce", on=H100, sizes=["256M"], timing="torch", background=traffic)
    assert row.time == pytest.approx(timed(2.0**28, "torch", background=traffic), rel=1e-9)
    assert row.busbw == pytest.approx(row.nbytes / row.time * 1.75)


def test_a_collective_of_a_process_costs_its_host_the_time_of_a_call():
    def program(m):
        from simperf.execution import collective
        from simperf.execution.ranks import run_ranks

        def rank(_):
            for _ in range(3):
                yield collective(None, "all-reduce", 8.0)

        yield from run_ranks(m, rank)

    for frontend, host in ((HOST, HOST.collective), (replace(HOST, collective=None), HOST.launch)):
        m = Session(Simulation(H100), profile=frontend)
        alone = kernel(8.0)
        time = m.play(program(m))
        least = max(3 * host, host + 3 * alone)  # hosts do not wait for the kernels
        assert least * (1 - 1e-9) <= time <= least + alone + 1e-6


# What has no meaning ----------------------------------------------------------------------------


def test_a_frontend_without_a_time_of_a_collective_is_refused():
    with pytest.raises(InputError, match=r"the frontend 'free' has no time of a collective's call"):
        told = {"use": "all-reduce", "algorithm": "nccl", "options": {"timing": "torch"}}
        simperf.run(simperf.make_scenario({"machine": {"use": "dgx-h100"}, "program": told}))


def test_a_process_of_torch_drives_one_gpu():
    with pytest.raises(InputError, match="a process of torch drives one GPU"):
        simperf.collective("all-reduce", on=H100, sizes=["8K"], timing="torch", launches=8)


def test_entry_times_and_calls_at_the_same_time_are_refused():
    with pytest.raises(InputError, match="says when each rank calls"):
        simperf.collective("all-reduce", on=H100, sizes=["8K"], timing="profiler", entry_times=[0.0] * 8)
    with pytest.raises(InputError, match="calls through torch follow each other"):
        told = {"use": "all-reduce", "algorithm": "nccl", "options": {"timing": "torch"}, "together": 2}
        hosts = {"use": "pytorch"}
        simperf.run(simperf.make_scenario({"machine": {"use": "dgx-h100"}, "program": told, "frontend": hosts}))


def test_a_call_alone_has_no_hosts():
    with pytest.raises(InputError, match="a call alone has none"):
        Call(H100, "all-reduce", "nccl", 8.0, H100.gpus).play(timing="torch")
