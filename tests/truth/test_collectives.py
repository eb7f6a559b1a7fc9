"""NCCL tables measured by others against what the catalogue and the tuner's constants say; nothing is fitted.

The present errors of all rows are the ratchet's (tests/truth/ratchet.py).
"""

import json
from statistics import median

import pytest

import simperf
from simperf.accuracy.collectives import collective_errors, collective_table
from simperf.accuracy.nccl_cases import KINDS, cases_known, cases_left_out
from simperf.accuracy.nccl_tables import large_tables
from simperf.accuracy.ring_fit import fit_ring
from simperf.cli import main
from tests.truth import collectives


@pytest.mark.truth
def test_every_measured_collective_is_set_up_or_left_out_with_a_reason(cases):
    told = {**cases_known(), **cases_left_out()}
    asked = {
        name
        for name, case in cases.items()
        if case["evidence"] == "measured" and (case["kind"] in KINDS or name.startswith("nccl"))
    }
    assert asked - set(told) == set()
    assert set(told) - set(cases) == set(), "set-ups of cases that are not there"


@pytest.mark.truth
def test_rails_add_up(cases):
    """One, four and eight cards a server of ten servers: busbw grows with them, as measured."""
    found = {}
    for each in (1, 4):
        points = list(collective_errors(cases[f"nccl-h100-xx-10node-g{each}-allreduce"], most=3))
        found[each] = points[-1]
    ratio = {what: getattr(found[1], what) / getattr(found[4], what) for what in ("measured", "predicted")}
    assert ratio["predicted"] == pytest.approx(ratio["measured"], rel=0.15)


@pytest.mark.truth
def test_a_ring_with_two_fitted_constants(truth):
    """One latency and one bandwidth do for sizes over three decades, but not to a few percent everywhere."""
    found = {table.title: fit_ring(table.ranks, table.rows) for table in large_tables(truth)}
    a100 = [fit for title, fit in found.items() if title.startswith("A100")]
    assert len(a100) == 5
    assert all(median(map(abs, fit.errors)) < 0.10 for fit in a100)
    assert all(100e9 < fit.bandwidth < 300e9 for fit in a100)


@pytest.mark.truth
def test_a_gpu_whose_table_took_no_part(truth):
    """An H200: medians of the absolute errors by size class, against constants that were fitted to other GPUs."""
    tables = list(collectives.kernel_tables(truth, "h200_sxm"))
    for collective, most in (("all-reduce", 0.04), ("all-gather", 0.04), ("reduce-scatter", 0.04), ("all-to-all", 0.1)):
        low = 0.0
        for (_, high), bound in zip(collectives.CLASSES, (0.12, 0.12, most), strict=True):
            errors = [e for one in tables if one.collective == collective for e in one.errors(low, high)]
            assert median(map(abs, errors)) < bound
            low = high


@pytest.mark.truth
@pytest.mark.parametrize("gpu", collectives.KERNELS)
def test_a_generation_that_is_left_out(truth, gpu):
    """Up to 16 MiB around rings nearer than a line fitted to the table of another generation; Hopper to 12 %."""
    tables, lines = (list(make(truth, gpu)) for make in (collectives.left_out_tables, collectives.alpha_beta_tables))
    for collective in ("all-reduce", "all-gather", "reduce-scatter"):
        low = 0.0
        for _, high in collectives.CLASSES[:2]:
            own, line = (
                median(abs(e) for one in found if one.collective == collective for e in one.errors(low, high))
                for found in (tables, lines)
            )
            assert own < line
            assert own < 0.12 or collectives.KERNELS[gpu][1] != "hopper"
            low = high


@pytest.mark.truth
def test_tables_in_a_loop_that_took_no_part(truth):
    """All-reduce inside servers that others measured with nccl-tests."""
    found = [one for one in collectives.published_tables(truth) if (one.servers, one.timing) == (1, "loop")]
    here = [one for one in found if one.collective == "all-reduce" and collectives.nvlink(one)]
    low = 0.0
    assert len(here) > 10
    for (_, high), bound in zip(collectives.CLASSES, (0.12, 0.12, 0.04), strict=True):
        assert median(abs(e) for one in here for e in one.errors(low, high)) < bound
        low = high


@pytest.mark.truth
def test_sources_of_the_same_hardware_are_printed_beside_the_errors(truth, capsys, monkeypatch):
    monkeypatch.setattr(collectives, "KERNELS", {"h200_sxm": collectives.KERNELS["h200_sxm"]})
    collectives.main([])
    out = capsys.readouterr().out
    assert "h100_sxm n=4, ar-vidur-h100_dgx-4w-4pn (profiler)" in out
    assert "nccl-gh200-alps-256n" in out
    assert "h200_sxm all-to-all (took no part)" in out


# `simperf collective` by default ----------------------------------------------------------

#: case of the accuracy page on the same server, and how its source set NCCL up
CASES = {
    "dgx-h100": ("nccl-h100x8-p5-awsbatch", {}),
    "dgx-a100": ("nccl-a100x8-allreduce-superbench", {"launches": 8}),
}


@pytest.mark.truth
@pytest.mark.parametrize("server", collectives.SERVERS)
def test_the_default_of_the_command_beside_measured_tables(truth, server):
    """Half precision on eight GPUs, 512 B to 512 MiB."""
    times = collectives.measured(truth, server)
    assert (min(times), max(times), len(times)) == (512, 512 * 1024**2, 21)
    rows = collectives.predicted(server, times)
    _, most = collectives.SERVERS[server]
    assert median(abs(rows[nbytes].time / time - 1) for nbytes, time in times.items()) < most


@pytest.mark.truth
@pytest.mark.parametrize("server", collectives.SERVERS)
def test_every_way_gives_the_time_of_the_command(truth, server, capsys):
    """`collective`, `run` of the program `all-reduce`, one bucket of `train`, and the accuracy page."""
    name, setup = CASES[server]
    sizes = list(collectives.measured(truth, server))
    rows = collectives.predicted(server, sizes)
    assert main(["collective", "all-reduce", "--server", server, "-b", "512", "-e", "512M", "--format", "json"]) == 0
    printed = {row["size"]: row["time"] for row in json.loads(capsys.readouterr().out)}
    table = {"columns": ["size_B", "time_us_out_of_place"], "unit": {}, "table": [[size, 1.0] for size in sizes]}
    page = collective_table([{"id": name, "kind": "allreduce", "measured": table}])
    asked = simperf.collective("all-reduce", on=server, sizes=sizes, **setup)
    for nbytes, row, same in zip(sizes, page, asked, strict=True):
        time = rows[nbytes].time
        assert printed[nbytes] == pytest.approx(time, rel=1e-12, abs=0.0)
        assert of_program(server, nbytes) == pytest.approx(time, rel=1e-12, abs=0.0)
        assert of_bucket(server, nbytes) == pytest.approx(time, rel=1e-12, abs=0.0)
        assert row.predicted == pytest.approx(same.time, rel=1e-12, abs=0.0)
        assert setup or row.predicted == pytest.approx(time, rel=1e-12, abs=0.0)


#: computation of the step beside which a bucket is exposed [s]
STEP = 2e-3


def of_program(server, nbytes):
    """Time of the program `all-reduce` [s]."""
    program = {"use": "all-reduce", "nbytes": f"{nbytes} B"}
    return simperf.run(simperf.make_scenario({"machine": {"use": server}, "program": program}), record=False).time


def of_bucket(server, nbytes):
    """What the one bucket of a training step adds to it [s]."""
    half = f"{STEP / 2} s"
    program = {"use": "train", "layers": 1, "forward": half, "backward": half, "batch": 64, "steps": 1}
    program |= {"weights": f"{nbytes} B", "bucket": f"{nbytes} B", "first_bucket": f"{nbytes} B"}
    found = simperf.run(simperf.make_scenario({"machine": {"use": server}, "program": program}), record=False)
    return found.metrics["exposed communication"].value
