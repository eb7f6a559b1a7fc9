"""Set-ups of measured collectives and how their tables are read (simperf.accuracy: nccl_cases, ring_fit)."""

import pytest

from simperf.accuracy.nccl_cases import KINDS, cases_known, cases_left_out, series_of, tuner_of
from simperf.accuracy.ring_fit import fit_ring
from simperf.errors import InputError

#: sets of servers that take long to build, in tests/truth
LARGE = 100


def _case(name, kind, **measured):
    return {"id": name, "kind": kind, "measured": measured}


def test_every_machine_can_be_built_and_gives_times():
    seen = set()
    for setup in cases_known().values():
        for own in setup.get("series", [{}]):
            whole = {key: value for key, value in {**setup, **own}.items() if key != "series"}
            key = str({name: whole.get(name) for name in ("machine", "server", "servers", "link", "bandwidth", "each")})
            if key not in seen and whole.get("servers", 1) <= LARGE // 5:
                seen.add(key)
                assert 0 < tuner_of(whole, "all-reduce").best(8.0).time < 1e-2, whole


def test_what_is_left_out_says_why():
    assert cases_left_out()
    assert all(len(reason) > 20 for reason in cases_left_out().values())
    assert not set(cases_left_out()) & set(cases_known())


def test_times_come_from_the_first_column_of_times():
    case = _case(
        "nccl-a100x8-allreduce-superbench",
        "allreduce",
        columns=["size_B", "time_us_out_of_place", "busbw"],
        unit={},
        table=[[0, 35.0, 0.0], [1024, 36.0, 0.05]],
    )
    ((series, tuner),) = series_of(case)
    assert [(point.nbytes, point.low) for point in series.points] == [(1024.0, pytest.approx(36e-6))]
    assert len(tuner.ranks) == 8


@pytest.mark.parametrize(("kind", "factor"), [("allreduce", 2 * 7 / 8), ("alltoall", 7 / 8), ("broadcast", 1.0)])
def test_bus_bandwidth_becomes_a_time(kind, factor):
    case = _case("nccl-azure-nd-H100_v5", kind, columns=["size_B", "busbw_ip"], unit={}, table=[[2**30, 400.0]])
    if kind == "alltoall":
        assert KINDS[kind] == "all-to-all"
    ((series, _),) = series_of(case)
    assert series.points[0].low == pytest.approx(2**30 * factor / 400e9)


def test_rows_columns_and_ranges_are_picked():
    columns = ["nodes", "gpus_per_node", "busbw_runs"]
    table = [[2, 1, [30.6, 31.4]], [2, 8, [14.5, 14.9]], [4, 1, [30.4, 30.8]], [4, 8, [22.2, 22.9]]]
    case = _case("nccl209-gcp-32gbe", "allreduce", columns=columns, unit="Gbit/s", table=table)
    found = [series for series, _ in series_of(case)]
    assert [(one.name.split()[0], one.label) for one in found] == [
        ("one", "2 servers"),
        ("eight", "2 servers"),
        ("one", "4 servers"),
        ("eight", "4 servers"),
    ]
    low = 2**30 * 8 / 31.4e9
    assert found[0].points[0].low == pytest.approx(low)
    assert found[0].points[0].high > low


def test_single_values_have_the_unit_of_the_case():
    case = _case(
        "nccltests22-tree-vs-ring-efa",
        "allreduce",
        unit="ms",
        value={"tree": 134, "ring (NCCL_TREE_THRESHOLD=0)": 268},
    )
    found = {series.name: (series, tuner) for series, tuner in series_of(case)}
    assert found["ring"][0].points[0].low == pytest.approx(0.268)
    assert found["tree"][1].best(1e9).algorithm == "tree"


def test_a_column_that_is_not_there_is_told():
    case = _case("nccl-azure-nd-H100_v5", "allreduce", columns=["size_B", "algbw"], unit={}, table=[])
    with pytest.raises(InputError, match="busbw_ip"):
        list(series_of(case))


def test_two_constants_of_a_ring_are_found():
    rows = [(size, 2 * (1e-6 + size / 2 / 50e9)) for size in (1e5, 1e7)]
    assert fit_ring(2, rows).bandwidth == pytest.approx(50e9, rel=1e-6)
