"""Measured NCCL tables beside what the catalogue and the tuner's constants predict: nothing is fitted.

``python -m tests.truth.collective_cases FOLDER`` prints the tables of the page about the
accuracy of collectives, and with ``points`` after it every point with its signed error.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

from simperf.collectives import Wiring, execute, make_plan
from simperf.collectives.nccl import Tuner
from simperf.hardware import Catalog, Machine, build_cluster

MACHINES = Path(__file__).parent / "machines"
KINDS = {"allreduce": "all-reduce", "allgather": "all-gather", "reducescatter": "reduce-scatter"}

#: columns that hold a time, with their factor to seconds
TIMES = {"time_us_out_of_place": 1e-6, "median_ms": 1e-3, "time_us": 1e-6}


def one(name: str) -> Callable[[Catalog], Machine]:
    return lambda catalog: catalog.machine(name)


def many(server: str, servers: int, link: str, fabric: str = "star", **more: int) -> Callable[[Catalog], Machine]:
    return lambda catalog: build_cluster(server, servers, catalog=catalog, link=link, fabric=fabric, **more)


@dataclass(frozen=True)
class Setup:
    """The machine of a case: how it is built, GPUs used of each server, whether switches add up."""

    machine: Callable[[Catalog], Machine]
    each: int = 0
    in_network: bool = False
    launches: int = 1


SETUPS = {
    "nccl-a100x8-allreduce-superbench": Setup(one("dgx-a100"), launches=8),
    "nccl-a100x8-allgather-superbench": Setup(one("dgx-a100"), launches=8),
    "nccl-a100x8-reducescatter-superbench": Setup(one("dgx-a100"), launches=8),
    "nccl-v100sxm3x12-allreduce-dgx2": Setup(one("dgx-2"), 12, launches=12),
    "nccl-v100sxm3x12-allgather-dgx2": Setup(one("dgx-2"), 12, launches=12),
    "nccl-4090x8-nop2p": Setup(one("rtx4090-8gpu"), launches=8),
    "nccl-2080tix2-pcie-allreduce": Setup(one("rtx2080ti-2gpu"), launches=2),
    "nccl-h100x4-snellius-1node-allreduce": Setup(one("h100-4gpu"), launches=4),
    "nccl-h100x4-snellius-1node-allgather": Setup(one("h100-4gpu"), launches=4),
    "nccl-h100x4-snellius-1node-reducescatter": Setup(one("h100-4gpu"), launches=4),
    "nccl-h100x8-snellius-2node-allreduce": Setup(many("h100-4gpu", 2, "infiniband-hdr")),
    "nccl-h100x8-snellius-2node-allgather": Setup(many("h100-4gpu", 2, "infiniband-hdr")),
    "nccl-h100x8-snellius-2node-reducescatter": Setup(many("h100-4gpu", 2, "infiniband-hdr")),
    "nccl-h100-xx-10node-g1-allreduce": Setup(many("dgx-h100", 10, "infiniband-ndr"), 1),
    "nccl-h100-xx-10node-g1-allgather": Setup(many("dgx-h100", 10, "infiniband-ndr"), 1),
    "nccl-h100-xx-10node-g1-reducescatter": Setup(many("dgx-h100", 10, "infiniband-ndr"), 1),
    "nccl-h100-xx-10node-g4-allreduce": Setup(many("dgx-h100", 10, "infiniband-ndr"), 4),
    "nccl-h100-xx-10node-g8-allreduce": Setup(many("dgx-h100", 10, "infiniband-ndr"), in_network=True),
    "nccl-h100-xx-10node-g8-allgather": Setup(many("dgx-h100", 10, "infiniband-ndr")),
    "nccl-h100-xx-10node-g8-reducescatter": Setup(many("dgx-h100", 10, "infiniband-ndr")),
    "nccl-h100x8-p5-awsbatch": Setup(one("dgx-h100"), in_network=True),
    "nccl-a100x16-p4de-2node": Setup(many("p4d-24xlarge", 2, "efa-100g", "rail")),
    "nccl-a100x16-p4d-2node": Setup(many("p4d-24xlarge", 2, "efa-100g", "rail")),
    "nccl-h100x16-p5-2node-adt": Setup(one("p5-x2"), in_network=True),
    "nccl-h100x16-p5-2node-keita": Setup(one("p5-x2"), in_network=True),
    "nccl-v100x16-p3dn-2node-efa": Setup(many("p3dn-24xlarge", 2, "efa-100g")),
    "nccl-v100x2-p3dn-2node-1gpu": Setup(many("p3dn-24xlarge", 2, "efa-100g"), 1),
    "nccl-v100x2-p3dn-2p3dn-2gpus": Setup(many("p3dn-24xlarge", 2, "efa-100g"), 1),
    "nccl-v100x4-p3dn-4p3dn-4gpus": Setup(many("p3dn-24xlarge", 4, "efa-100g"), 1),
    "nccl-t4x2-2node-efa": Setup(many("t4-efa", 2, "efa-100g")),
    "nccl-t4x2-2node-g4dnmetal-efa": Setup(many("t4-efa", 2, "efa-100g")),
    "nccl-3090x2-2node-rdma": Setup(many("rtx3090-100g", 2, "infiniband-edr")),
    "nccl-h100x16-a3mega-2node": Setup(many("dgx-h100", 2, "ethernet-200g-jumbo"), in_network=True),
    "nccl-h100x16-a3mega-allgather": Setup(many("dgx-h100", 2, "ethernet-200g-jumbo")),
    "nccl-a3ultra-allgather": Setup(many("dgx-h100", 2, "infiniband-ndr")),
    "nccl-a100x16-oci-2node": Setup(many("dgx-a100", 2, "infiniband-hdr")),
    "nccl-h100x16-oci-2node": Setup(many("dgx-h100", 2, "infiniband-ndr"), in_network=True),
    "nccl-h100x64-coreweave": Setup(many("dgx-h100", 8, "infiniband-ndr"), in_network=True),
    "nccl-a100-polaris-2n-env5": Setup(many("a100-4gpu", 2, "ethernet-200g-jumbo")),
    "nccl-a100-polaris-2n-allgather-env5": Setup(many("a100-4gpu", 2, "ethernet-200g-jumbo")),
    "nccl-a100-polaris-8n-env5": Setup(many("a100-4gpu", 8, "ethernet-200g-jumbo")),
    "nccl-a100-polaris-8n-allgather-env5": Setup(many("a100-4gpu", 8, "ethernet-200g-jumbo")),
    "nccl-a100-polaris-540n-env5": Setup(many("a100-4gpu", 540, "ethernet-200g-jumbo")),
    "nccl-gh200-alps-1n": Setup(one("gh200-4gpu")),
    "nccl-gh200-alps-2n": Setup(many("gh200-4gpu", 2, "ethernet-200g-jumbo")),
    "nccl-gh200-alps-4n": Setup(many("gh200-4gpu", 4, "ethernet-200g-jumbo")),
    "nccl-gh200-alps-16n": Setup(many("gh200-4gpu", 16, "ethernet-200g-jumbo")),
    "nccl-gh200-alps-32n": Setup(many("gh200-4gpu", 32, "ethernet-200g-jumbo")),
    "nccl-gh200-alps-128n": Setup(many("gh200-4gpu", 128, "ethernet-200g-jumbo")),
    "nccl-gh200-alps-256n": Setup(many("gh200-4gpu", 256, "ethernet-200g-jumbo")),
    "ar-vidur-a100_dgx-2w-2pn": Setup(one("dgx-a100"), 2),
    "ar-vidur-a100_dgx-4w-4pn": Setup(one("dgx-a100"), 4),
    "ar-vidur-h100_dgx-2w-2pn": Setup(one("dgx-h100"), 2),
    "ar-vidur-h100_dgx-4w-4pn": Setup(one("dgx-h100"), 4),
}


@dataclass(frozen=True)
class Point:
    """One measured time and its prediction [s], for a size [B]."""

    case: str
    nbytes: float
    measured: float
    predicted: float
    choice: str

    @property
    def error(self) -> float:
        return self.predicted / self.measured - 1.0


def points(case: dict, *, most: int = 0) -> Iterator[Point]:
    """Points of a case; `most` of them, spread over the sizes, if that is not 0."""
    setup = SETUPS[case["id"]]
    machine = setup.machine(Catalog.load([MACHINES]))
    ranks = list(machine.gpus)
    if setup.each:
        seen: dict[str, int] = {}
        kept = []
        for node in ranks:
            server = machine.nodes[node].server
            seen[server] = seen.get(server, 0) + 1
            if seen[server] <= setup.each:
                kept.append(node)
        ranks = kept
    tuner = Tuner(machine, ranks, collective=KINDS[case["kind"]], in_network=setup.in_network, launches=setup.launches)
    columns = case["measured"]["columns"]
    column = next(index for index, name in enumerate(columns) if name in TIMES)
    rows = [row for row in case["measured"]["table"] if row[0] and row[column]]
    if most and len(rows) > most:
        rows = [rows[round(index * (len(rows) - 1) / (most - 1))] for index in range(most)]
    for row in rows:
        best = tuner.best(float(row[0]))
        yield Point(case["id"], row[0], row[column] * TIMES[columns[column]], best.time, best.name)


def ends(found: list[Point]) -> tuple[float | None, float | None]:
    """Median error at 64 MiB and above, and median ratio at 8 KiB and below."""
    large = [point.error for point in found if point.nbytes >= 1 << 26]
    small = [point.predicted / point.measured for point in found if point.nbytes <= 1 << 13]
    return (median(large) if large else None), (median(small) if small else None)


@dataclass(frozen=True)
class Fit:
    """Two constants of a ring, and how far it then is from the points it was fitted to."""

    latency: float
    bandwidth: float
    errors: list[float]


def fit(n: int, rows: list[tuple[float, float]]) -> Fit:
    """Fit latency and bandwidth of a link so that the built-in ring meets times by size, in relative terms.

    A ring's time is linear in both constants, so that this is linear least squares; the
    errors are those of the plan run on a wiring with the constants.
    """
    steps = 2 * (n - 1)
    size, time = np.array(rows).T
    design = np.stack((np.full_like(size, steps), steps * size / n), axis=1) / time[:, None]
    latency, inverse = np.linalg.lstsq(design, np.ones_like(size), rcond=None)[0]
    latency = max(float(latency), 0.0)
    wiring = Wiring("ring", n, bandwidth=1.0 / float(inverse), latency=latency)
    plan = make_plan("all-reduce", "ring", nranks=n)
    errors = [execute(plan, wiring, nbytes=nbytes).time / measured - 1.0 for nbytes, measured in rows]
    return Fit(latency, 1.0 / float(inverse), errors)


def tables(folder: Path) -> Iterator[tuple[str, int, list[tuple[float, float]]]]:
    """Measured all-reduce times by size: name, ranks, rows of size [B] and time [s]."""
    for n in range(2, 7):
        with open(folder / "nccl" / f"a100_all_reduce_n{n}.csv", encoding="utf-8") as stream:
            lines = list(csv.reader(stream))[1:]
        yield f"A100 with NVSwitch, {n} ranks", n, [(float(row[0]), float(row[3]) * 1e-9) for row in lines]
    with open(folder / "nccl" / "h100_dgx_all_reduce.csv", encoding="utf-8") as stream:
        lines = list(csv.reader(stream))[1:]
    for n in (2, 4):
        rows = [(float(row[1]), float(row[3]) * 1e-3) for row in lines if int(row[0]) == n]
        yield f"DGX H100, {n} ranks, through torch", n, rows


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:+.0f} %"


def page(folder: Path, most: int) -> Iterator[str]:
    """The tables of docs/explanation/accuracy-collectives.md, line by line."""
    cases = {case["id"]: case for case in json.loads((folder / "cases.json").read_text("utf-8"))}
    yield "| case | points | 64 MiB and above | 8 KiB and below | least | largest |"
    yield "|---|--:|--:|--:|--:|--:|"
    larges, smalls = [], []
    for name in SETUPS:
        found = list(points(cases[name], most=most))
        large, small = ends(found)
        larges += [abs(large)] if large is not None else []
        smalls += [max(small, 1 / small)] if small is not None else []
        errors = [point.error for point in found]
        ratio = "" if small is None else f"x {small:.2f}"
        span = f"{_percent(min(errors))} | {_percent(max(errors))}"
        yield f"| {name} | {len(found)} | {_percent(large)} | {ratio} | {span} |"
    yield ""
    yield f"Median of the errors' sizes at 64 MiB and above: {100 * median(larges):.1f} % over {len(larges)} cases."
    yield f"Median factor at 8 KiB and below: {median(smalls):.2f} over {len(smalls)} cases."
    yield ""
    yield "| measured | points | latency a step | bandwidth a link | median of the errors' sizes | least | largest |"
    yield "|---|--:|--:|--:|--:|--:|--:|"
    for title, n, rows in tables(folder):
        made = fit(n, rows)
        size = f"{100 * median(map(abs, made.errors)):.1f} %"
        constants = f"{made.latency * 1e6:.2f} us | {made.bandwidth / 1e9:.1f} GB/s"
        span = f"{_percent(min(made.errors))} | {_percent(max(made.errors))}"
        yield f"| {title} | {len(rows)} | {constants} | {size} | {span} |"


def main(folder: str, what: str) -> None:
    """Print the page's tables, or with ``points`` every point: size, measured and predicted time, signed error."""
    if what != "points":
        for line in page(Path(folder), 0):
            print(line, flush=True)
        return
    cases = {case["id"]: case for case in json.loads((Path(folder) / "cases.json").read_text("utf-8"))}
    for name in SETUPS:
        print(name, flush=True)
        for point in points(cases[name]):
            times = f"{point.measured:.4g} {point.predicted:.4g} {100 * point.error:+.1f} %"
            print(f"  {point.nbytes:.0f} {times} {point.choice}")
    for title, n, rows in tables(Path(folder)):
        print(title, "fitted")
        for (nbytes, measured), error in zip(rows, fit(n, rows).errors, strict=True):
            print(f"  {nbytes:.0f} {measured:.4g} {measured * (1 + error):.4g} {100 * error:+.1f} %")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "page")
