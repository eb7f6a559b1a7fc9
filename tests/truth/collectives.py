"""Measured tables of collectives beside what simperf gives: ``python -m tests.truth.collectives [--before FOLDER]``.

A table is a collective among GPUs of servers, by size, with the way in which its calls were timed: in a CUDA graph, in
a loop, by events around a call through torch, or by the kernels in a profile of such calls. This is set here or in
``simperf/accuracy/data/nccl_cases.toml`` before anything is compared; hosts are played where they take part. Constants
of kernels were fitted to the tables of ``llm/kernels`` of three GPUs; all other tables took no part. With ``--before``,
a checkout of another state of simperf is asked the same. With ``--points``, the points of half precision on eight GPUs
are printed.
"""

import argparse
import csv
import gzip
import io
import json
import math
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import NamedTuple
from unittest import mock

import simperf

#: server of the catalogue -> table, and the most that the median of the absolute errors may be
SERVERS = {"dgx-h100": ("h100_sxm_nccl.csv.gz", 0.08), "dgx-a100": ("a100_sxm_nccl.csv.gz", 0.20)}
#: bytes of an element of half precision
HALF = 2
RANKS = 8

#: GPUs of `llm/kernels`: server of the catalogue, generation, and whether constants were fitted to the table
KERNELS = {
    "a100_sxm": ("dgx-a100", "ampere", True),
    "h100_sxm": ("dgx-h100", "hopper", True),
    "h200_sxm": ("dgx-h100", "hopper", False),
    "b200_sxm": ("dgx-b200", "blackwell", True),
}
COLLECTIVES = {
    "all_reduce": "all-reduce",
    "all_gather": "all-gather",
    "reduce_scatter": "reduce-scatter",
    "alltoall": "all-to-all",
}
#: names of size classes and their largest sizes [B]
CLASSES = (("to 8 KiB", 8 * 2**10), ("to 16 MiB", 16 * 2**20), ("above", math.inf))
#: sources of the same hardware: other tables for each of `llm/kernels`
ALIKE = {
    ("a100_sxm", 2): ("vtrain-n2", "ar-vidur-a100_dgx-2w-2pn"),
    ("a100_sxm", 4): ("vtrain-n4", "ar-vidur-a100_dgx-4w-4pn"),
    ("a100_sxm", 8): ("nccl-a100x8-allreduce-superbench",),
    ("h100_sxm", 2): ("ar-vidur-h100_dgx-2w-2pn",),
    ("h100_sxm", 4): ("ar-vidur-h100_dgx-4w-4pn",),
    ("h100_sxm", 8): ("nccl-h100x8-p5-awsbatch", "nccl-azure-nd-H100_v5"),
    ("b200_sxm", 8): ("nccl-b200-1v4nodes-stas, one server",),
}
#: published tables of many servers
MANY = 16


class Table(NamedTuple):
    """Times [s] by payload [B] of one collective, and what was predicted."""

    title: str
    collective: str
    timing: str
    servers: int
    measured: dict
    predicted: dict
    choices: dict

    def errors(self, low=0.0, high=math.inf):
        """Predicted over measured, less 1, of sizes above `low` up to `high`."""
        return [
            self.predicted[size] / time - 1
            for size, time in self.measured.items()
            if low < size <= high and size in self.predicted
        ]


def truth_folder():
    """Folder of measured data as SIMPERF_TRUTH names it, or beside the checkout."""
    named = os.environ.get("SIMPERF_TRUTH")
    folder = Path(named) if named else Path(__file__).parents[3] / "shared" / "truth"
    if not (folder / "cases.json").is_file():
        raise SystemExit(f"no measured data: {folder / 'cases.json'} does not exist; set SIMPERF_TRUTH to its folder")
    return folder


def kernel_rows(truth, gpu):
    """Times [s] by payload [B] of a GPU's table, by collective, precision and number of GPUs."""
    text = gzip.decompress((truth / "llm" / "kernels" / f"{gpu}_nccl.csv.gz").read_bytes()).decode()
    found = defaultdict(dict)
    for row in csv.DictReader(io.StringIO(text)):
        key = COLLECTIVES[row["op_name"]], row["nccl_dtype"], int(row["num_gpus"])
        element = HALF if row["nccl_dtype"] == "half" else 1
        found[key][element * int(row["message_size"])] = float(row["latency"]) * 1e-3
    return found


def measured(truth: Path, server: str) -> dict[int, float]:
    """Times [s] by payload [B]."""
    return kernel_rows(truth, SERVERS[server][0].removesuffix("_nccl.csv.gz"))["all-reduce", "half", RANKS]


def predicted(server: str, sizes) -> dict:
    """Rows of the default by payload [B]."""
    return {int(row.nbytes): row for row in simperf.collective("all-reduce", on=server, sizes=list(sizes), ranks=RANKS)}


def asked(collective, *, on, ranks, sizes, timing, in_network=None):
    """Rows of the command by payload [B]; a state of simperf that knows no timing is asked without it."""
    from simperf.collectives.settings import SETTINGS

    options = {"timing": timing} if "timing" in SETTINGS else {}
    if in_network is not None:
        options["in_network"] = in_network
    rows = simperf.collective(collective, on=on, sizes=list(sizes), ranks=ranks, **options)
    return {int(row.nbytes): row for row in rows}


def kernel_tables(truth, gpu):
    """Tables of `llm/kernels` of a GPU. int8 goes around rings: switches add up numbers of 16 bits and more."""
    on, _, _ = KERNELS[gpu]
    for (collective, precision, ranks), times in kernel_rows(truth, gpu).items():
        switched = False if precision == "int8" else None
        rows = asked(collective, on=on, ranks=ranks, sizes=times, timing="graph", in_network=switched)
        title = f"{gpu} {collective} {precision} n={ranks}"
        yield _table(title, collective, "graph", 1, times, rows)


def _table(title, collective, timing, servers, times, rows):
    choices = {size: row.choice for size, row in rows.items()}
    return Table(title, collective, timing, servers, times, {size: row.time for size, row in rows.items()}, choices)


def published_tables(truth):
    """Tables of cases.json whose machine is known, and those of A100 with NVSwitch in a loop."""
    from simperf.accuracy.cases import read_cases
    from simperf.accuracy.collectives import collective_errors
    from simperf.accuracy.nccl_cases import KINDS, cases_known, series_of
    from simperf.accuracy.nccl_tables import large_tables

    for case in read_cases(truth):
        if case["id"] not in cases_known():
            continue
        found, known = defaultdict(list), {}
        for series, tuner in series_of(case):
            known[series.name] = len(tuner.shape.groups), series.setup.get("timing", "loop")
        for point in collective_errors(case):
            found[point.series].append(point)
        for series, points in found.items():
            title = ", ".join(part for part in (case["id"], series) if part)
            times = {point.nbytes: point.measured for point in points}
            told, choices = ({p.nbytes: getattr(p, key) for p in points} for key in ("predicted", "choice"))
            servers, timing = known[series]
            yield Table(title, KINDS[case["kind"]], timing, servers, times, told, choices)
    for table in large_tables(truth):
        if table.server == "dgx-a100":
            times = {int(size): time for size, time in table.rows if int(size).bit_count() == 1}
            rows = asked("all-reduce", on=table.server, ranks=table.ranks, sizes=times, timing="loop")
            yield _table(f"vtrain-n{table.ranks}", "all-reduce", "loop", 1, times, rows)


def left_out_tables(truth, gpu):
    """Tables of a GPU, predicted as if no table of its generation were known."""
    from simperf.collectives.nccl import Tuner
    from simperf.collectives.nccl_kernels import estimated_costs, generations
    from simperf.collectives.settings import NcclSettings
    from simperf.hardware import Catalog

    on, generation, _ = KERNELS[gpu]
    machine, own = Catalog.load().machine(on), generations()[generation]
    other = estimated_costs(own.exchange, own.links, without=generation)
    with mock.patch("simperf.collectives.nccl.kernel_costs", return_value=other):
        for (collective, precision, ranks), times in kernel_rows(truth, gpu).items():
            switched = False if precision == "int8" else None
            nodes = machine.gpus[:ranks]
            tuner = Tuner(machine, nodes, collective, NcclSettings(in_network=switched, timing="graph"))
            told = {size: tuner.best(size).time for size in times}
            yield Table(f"{gpu} {collective} {precision} n={ranks}", collective, "graph", 1, times, told, {})


def alpha_beta_tables(truth, gpu):
    """Tables of a GPU by a latency and a bandwidth for each collective and number of GPUs of another generation.

    They were fitted by least squares of relative errors, and the bandwidth is as many times as large as the links'.
    """
    own = KERNELS[gpu][1]
    other, fitted = ("a100_sxm", "ampere") if own == "hopper" else ("h100_sxm", "hopper")
    links = {"ampere": 300, "hopper": 450, "blackwell": 900}
    faster = links[own] / links[fitted]
    rows = kernel_rows(truth, other)
    for key, times in kernel_rows(truth, gpu).items():
        alpha, beta = _line(rows[key])
        told = {size: alpha + beta * size / faster for size in times}
        collective, precision, ranks = key
        yield Table(f"{gpu} {collective} {precision} n={ranks}", collective, "graph", 1, times, told, {})


def _line(times):
    """Latency [s] and time of a byte [s] with the least squares of relative errors."""
    aa = ab = bb = a = b = 0.0
    for size, time in times.items():
        one, two = 1 / time, size / time
        aa, ab, bb, a, b = aa + one * one, ab + one * two, bb + two * two, a + one, b + two
    det = aa * bb - ab * ab
    return (a * bb - b * ab) / det, (b * aa - a * ab) / det


# Report --------------------------------------------------------------------------------


def before_tables(folder, truth):
    """Tables as another checkout predicts them, by title."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "SIMPERF_TRUTH": str(truth)}
    command = [sys.executable, str(Path(__file__).resolve()), "--predictions"]
    told = subprocess.run(command, env=environment, cwd=folder, check=True, capture_output=True, text=True).stdout
    return {title: {float(size): time for size, time in rows} for title, rows in json.loads(told)}


def _print_predictions(truth):
    tables = [table for gpu in KERNELS for table in kernel_tables(truth, gpu)] + list(published_tables(truth))
    print(json.dumps([(table.title, list(table.predicted.items())) for table in tables]))


def _as_before(table, before):
    return table._replace(predicted=before.get(table.title, {})) if before else None


def _figure(tables, low=0.0, high=math.inf):
    """Median of the absolute errors of all points [%]."""
    errors = [abs(error) for table in tables if table is not None for error in table.errors(low, high)]
    return f"{100 * median(errors):>6.1f}" if errors else "     -"


def _classes(title, columns):
    """A line for each size class; columns are lists of tables."""
    low = 0.0
    for name, high in CLASSES:
        figures = " ".join(f"{_figure(tables, low, high):>14}" for tables in columns)
        print(f"  {title:<38} {name:<10} {figures}")
        low = high


def _print_kernels(truth, before):
    heads = ("simperf", "generation out", "alpha-beta", "before")
    print("# llm/kernels (calls in a graph): median of the absolute errors [%]. 'generation out': estimated from the")
    print("# tables of others. 'alpha-beta': fitted to the table of another generation.")
    print("  " + " " * 50 + " ".join(f"{head:>14}" for head in heads))
    for gpu, (_, _, fitted) in KERNELS.items():
        sets = [list(make(truth, gpu)) for make in (kernel_tables, left_out_tables, alpha_beta_tables)]
        sets.append([_as_before(table, before) for table in sets[0]])
        for collective in COLLECTIVES.values():
            columns = [[one for one in tables if one is not None and one.collective == collective] for tables in sets]
            role = "fitted" if fitted else "took no part"
            _classes(f"{gpu} {collective} ({role})", columns)


def _print_published(tables, before):
    print("# published tables of one server, none of which a constant of kernels was fitted to: the same, and before")
    for timing in ("loop", "torch", "profiler"):
        here = [one for one in tables if one.servers == 1 and one.timing == timing and nvlink(one)]
        for collective in COLLECTIVES.values():
            some = [one for one in here if one.collective == collective]
            if some:
                columns = [some, [_as_before(one, before) for one in some]]
                _classes(f"{collective}, {timing}, {len(some)} tables", columns)
        for one in here:
            _classes(f"  {one.title}"[:38], [[one], [_as_before(one, before)]])


def nvlink(table):
    """Whether it is of GPUs that NVLink joins, of a generation whose constants are known."""
    return any(name in table.title for name in ("a100", "h100", "h200", "b200", "gh200", "H100", "vtrain"))


def _print_many(tables, before):
    print(f"# published tables of {MANY} servers and more: error at the largest size, and median above 64 MiB; before")
    ends, medians = [], []
    for one in (one for one in tables if one.servers >= MANY):
        end, middle = one.errors()[-1], median(map(abs, one.errors(64 * 2**20)))
        old = _as_before(one, before)
        told = f"{100 * old.errors()[-1]:+7.1f} {100 * median(map(abs, old.errors(64 * 2**20))):6.1f}" if old else ""
        print(f"  {one.title:<45} {100 * end:+7.1f} {100 * middle:6.1f}   {told}")
        ends.append(abs(end))
        medians.append(middle)
    if ends:
        print(f"  {'median of the tables':<45} {100 * median(ends):7.1f} {100 * median(medians):6.1f}")


def _print_sources(truth, tables):
    print("# sources of the same hardware, all-reduce of all GPUs: median of |other / llm/kernels - 1| [%], and")
    print("# the error of simperf on the other one")
    named = {table.title: table for table in tables}
    for (gpu, ranks), others in ALIKE.items():
        base = kernel_rows(truth, gpu)["all-reduce", "half", ranks]
        for title in (one for one in others if one in named):
            other, low = named[title], 0.0
            for name, high in CLASSES:
                both = [size for size in other.measured if size in base and low < size <= high]
                if both:
                    apart = 100 * median(abs(other.measured[size] / base[size] - 1) for size in both)
                    error = 100 * median(abs(other.predicted[size] / other.measured[size] - 1) for size in both)
                    told = f"  {gpu} n={ranks}, {title} ({other.timing})"
                    print(f"{told[:68]:<70} {name:<10} {apart:6.1f} {error:6.1f}")
                low = high


def _print_points(truth):
    for server, (_, most) in SERVERS.items():
        times = measured(truth, server)
        rows = predicted(server, times)
        errors = {nbytes: rows[nbytes].time / time - 1 for nbytes, time in times.items()}
        print(f"# all-reduce of half precision, {RANKS} GPUs of {server}: predicted by default, measured")
        print(f"# {'size (B)':>11} {'predicted (us)':>15} {'measured (us)':>14} {'error (%)':>10}  chosen")
        for nbytes, time in times.items():
            row, error = rows[nbytes], 100 * errors[nbytes]
            print(f"  {nbytes:>11} {row.time * 1e6:>15.2f} {time * 1e6:>14.2f} {error:>+10.1f}  {row.choice}")
        middle = median(map(abs, errors.values()))
        print(f"# median of the absolute errors: {100 * middle:.1f} %, at most {100 * most:.0f} %")


def main(arguments=None) -> None:
    """Print measured beside predicted, and the medians."""
    parser = argparse.ArgumentParser(prog="python -m tests.truth.collectives", description=__doc__.split("\n\n")[0])
    parser.add_argument("--before", type=Path, help="checkout of another state of simperf, which is asked the same")
    parser.add_argument("--points", action="store_true", help="points of half precision on eight GPUs")
    parser.add_argument("--predictions", action="store_true", help="predictions alone, as JSON")
    given = parser.parse_args(arguments)
    truth = truth_folder()
    if given.predictions:
        _print_predictions(truth)
        return
    if given.points:
        _print_points(truth)
        return
    before = before_tables(given.before, truth) if given.before else {}
    tables = list(published_tables(truth))
    _print_kernels(truth, before)
    _print_published(tables, before)
    _print_many(tables, before)
    _print_sources(truth, tables)


if __name__ == "__main__":
    main()
