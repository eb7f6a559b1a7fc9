"""Output of `simperf collective`: tables, winners, measured times, pictures and a page."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from simperf.collectives.bench import Row, best_rows
from simperf.collectives.settings import NCCL
from simperf.errors import InputError, Problem
from simperf.hardware import GpuPart
from simperf.json_format import json_text
from simperf.report import collectives as tables
from simperf.report.collective_intervals import CollectiveIntervals
from simperf.report.rows import rows_text
from simperf.report.terminal import fold_comments
from simperf.scenario.own_constants import own_gpu_constants
from simperf.study.collective.options import options_taken
from simperf.units import format_quantity

if TYPE_CHECKING:
    from simperf.calibrate.measured_sizes import MeasuredSizes
    from simperf.study.collective.comparison import AlgorithmComparison
    from simperf.study.collective.request import CollectiveRequest, SizeRange

__all__ = ["CollectiveOutput", "show_collective"]

Say = Callable[[str], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveOutput:
    """Output of a collective, and its files; names are those of the command's options.

    Parameters
    ----------
    form : {"table", "json", "csv"}
    nccl_json : bool
        The JSON of nccl-tests instead.
    best : bool
        The fastest idealised algorithm of each size.
    map_file, plot, report : Path, optional
        Pictures and a page.
    language : str
        Of the page.
    measured : Path, optional
        A log that is shown beside the prediction, at its sizes.
    command : str
        The command line, for the page.
    arguments : sequence of str
        Its words, for nccl-tests' JSON.
    """

    form: Literal["table", "json", "csv"] = "table"
    nccl_json: bool = False
    best: bool = False
    map_file: Path | None = None
    plot: Path | None = None
    report: Path | None = None
    language: str = "en"
    measured: Path | None = None
    command: str = ""
    arguments: Sequence[str] = ()

    def refuse_together(self, given: Collection[str]) -> None:
        """Refuse outputs of which one would be left out in silence; `given` are the options that were typed.

        Raises
        ------
        InputError
            With each of them.
        """
        wrong = []
        if "as_json" in given and "output" in given:
            wrong.append(Problem("nccl-tests' JSON goes to the same stream", key="--format", expected="--json alone"))
        for key in ("plot", "report", "as_json", "output", "best") if self.map_file is not None else ():
            option = {"as_json": "--json", "output": "--format"}.get(key, f"--{key}")
            if key in given:
                wrong.append(Problem("a map is all that --map makes", key=option, expected="--map alone"))
        alone = ("map_file", "best", "as_json", "plot", "report", "factor", "step") if self.measured is not None else ()
        for key in alone:
            option = {"as_json": "--json", "map_file": "--map", "factor": "-f", "step": "-i"}.get(key, f"--{key}")
            if key in given:
                message = "measured times are shown with the prediction in one table, at their sizes"
                wrong.append(Problem(message, key=option, expected="--measured without it"))
        if wrong:
            raise InputError(wrong)


def show_collective(
    request: CollectiveRequest, sizes: SizeRange, output: CollectiveOutput, *, say: Say, note: Say
) -> None:
    """Time a collective and show what was asked for.

    Parameters
    ----------
    request : CollectiveRequest
    sizes : SizeRange
    output : CollectiveOutput
    say, note : callable
        Take the result, and what is said beside it.

    Raises
    ------
    InputError
        An option without a meaning here.
    """
    if output.measured is not None:
        say(_beside_measured(request, sizes, output))
        return
    found = request.comparison()
    payloads = sizes.sizes()
    if output.map_file is not None:
        _save_map(found, payloads, output.map_file, note)
        return
    made, refusals = found.tables(payloads)
    header = _header(found, request)
    say(_text(made, output, header=header, factor=sizes.factor, intervals=_intervals(found, request)))
    for line in refusals:
        note(f"left out: {line}")
    if output.plot is not None:
        _save_load(found, made, output.plot)
        note(f"wrote {output.plot}")
    if output.report is not None:
        from simperf.report.html import collective_report, save_page
        from simperf.report.language import spoken

        where = getattr(found.built.machine, "name", "") or found.choice.topology
        among = f"{len(found.built.ranks)} ranks on {where}"
        name = found.collective
        scaling = found.scaling(payloads[-1], made)
        with spoken(output.language, drawn=False):
            page = collective_report(
                made,
                found.built.machine,
                title=f"{name}: {among}",
                question=f"How long does {name} take among {among}, by size, and which way wins?",
                scaling=scaling,
                settings=header.splitlines(),
                refusals=refusals,
                command=output.command,
            )
        save_page(page, output.report)
        note(f"wrote {output.report}: open it in a browser")


def _text(
    made: Mapping[str, list[Row]],
    output: CollectiveOutput,
    *,
    header: str,
    factor: float,
    intervals: CollectiveIntervals,
) -> str:
    """The tables in the form that is asked for, with what published collectives say of their times."""
    tuned = {name: rows for name, rows in made.items() if not rows[0].idealised}
    ideal = {name: rows for name, rows in made.items() if rows[0].idealised}
    winners = best_rows(ideal) if output.best and ideal else []
    shown = tuned if output.best else made
    rows = [*(row for table in shown.values() for row in table), *winners]
    if output.nccl_json:
        return json_text(tables.nccl_document(rows, args=output.arguments, factor=factor, ngpus=intervals.ranks))
    if output.form == "json":
        return json_text(tables.rows_document(rows, intervals))
    if output.form == "csv":
        return tables.rows_csv(rows)
    texts = [tables.format_rows(table, title=title) for title, table in shown.items()]
    texts += intervals.lines([row for table in shown.values() for row in table])
    texts += [tables.format_winners(winners)] if winners else []
    return fold_comments("\n".join([header, *texts]))


def _intervals(found: AlgorithmComparison, request: CollectiveRequest) -> CollectiveIntervals:
    """What published collectives say: of the catalogue's parts, alone on their links, all GPUs at a time."""
    ranks, machine = found.built.ranks, found.built.machine
    parts = (machine.nodes[name].part for name in ranks)
    gpus = frozenset(part.name for part in parts if isinstance(part, GpuPart))
    reasons = {
        "published collectives are of machines, not of a topology of equal links": bool(found.choice.topology),
        "published figures were predicted by the catalogue, not with a profile": found.choice.profile is not None,
        "published collectives have their links to themselves": bool(request.background),
        "in published collectives no GPU is late": bool(request.late),
        "published collectives have the protocol that NCCL chooses": bool(request.protocol),
        "published collectives are of two GPUs or more": len(ranks) < 2,
    }
    why_not = next((reason for reason, holds in reasons.items() if holds), "")
    if not why_not and (own := own_gpu_constants(machine)):
        why_not = f"published figures were predicted by the catalogue, not with {own}"
    return CollectiveIntervals(gpus, len(ranks), why_not)


def _header(found: AlgorithmComparison, request: CollectiveRequest) -> str:
    """What the table is about, as comments."""
    machine, count, profile = found.built.machine, len(found.built.ranks), found.choice.profile
    name = machine.name
    lines = [f"# simperf collective {found.collective}: {count} rank{'' if count == 1 else 's'} on {name}"]
    if found.choice.topology:
        rate, wait = format_quantity(found.choice.bandwidth, "B/s"), format_quantity(found.choice.latency, "s")
        crossed = "; a route crosses two, r0> from rank 0 and >r0 to it" if found.choice.topology == "star" else ""
        lines.append(f"# every link {rate} each way, {wait}{crossed}")
    if profile is not None:
        lines.append(f"# profile {profile.name}: {profile.title}")
    lines += _settings(found)
    lines += [f"# late: {word}" for word in request.late] + [f"# background: {word}" for word in request.background]
    lines.append("# simulated; K, M, G are powers of 1024, as in nccl-tests; GB/s are 1e9 B/s")
    return "\n".join(lines)


def _settings(found: AlgorithmComparison) -> list[str]:
    """What was given to NCCL, and the protocol, as comments over a table."""
    names, options, protocol = set(found.algorithms), found.options, found.protocol
    given = {key: options[key] for key in options_taken("", "nccl") if key in options}
    lines = []
    if given:
        lines.append("# nccl: " + ", ".join(_setting(key, value) for key, value in given.items()))
    if protocol and not names <= set(NCCL):
        lines.append(f"# protocol {protocol}: start, latency and efficiency of NCCL's tuner")
    if protocol and names & set(NCCL):
        lines.append(f"# nccl: no protocol but {protocol}, as with NCCL_PROTO")
    return lines


#: how calls follow each other, by its name
_TIMINGS = {"graph": "in a CUDA graph", "loop": "in a loop", "torch": "through torch"}


def _setting(key: str, value: Any) -> str:
    if key == "in_network":
        return "switches add up" if value else "switches do not add up"
    return {
        "network": f"network {value}",
        "launches": f"one process launches on {value} GPU{'' if value == 1 else 's'}",
        "timing": f"calls {_TIMINGS[str(value)]}" if key == "timing" else "",
        "version": f"version {value}",
    }[key]


def _save_map(found: AlgorithmComparison, sizes: Sequence[int], path: Path, note: Say) -> None:
    """Draw which algorithm wins over numbers of ranks and sizes."""
    from simperf.report import collective_pictures, style

    fastest = found.fastest(sizes)
    style.save(collective_pictures.crossover_map(fastest.rows, title=fastest.title), path)
    note(f"wrote {path}")
    for line in fastest.refusals:
        note(f"left out: {line}")


def _save_load(found: AlgorithmComparison, made: Mapping[str, Sequence[Row]], path: Path) -> None:
    """Draw the machine with the load of every link under the largest size of the first algorithm."""
    if not made:
        return
    machine, (name, rows) = found.built.machine, next(iter(made.items()))
    if machine.topology is None:
        from simperf.report.topology import save_topology

        what = f"load of the links under {name} {found.collective} of {tables.size_text(rows[-1].nbytes)}"
        save_topology(machine, path, load=rows[-1].loads, subtitle=what)
    else:
        from simperf.report import collective_pictures, style

        drawn = collective_pictures.topology_picture(machine.topology, rows[-1], title=f"{found.collective}, {name}")
        style.save(drawn, path)


# Measured times ---------------------------------------------------------------------------


def _beside_measured(request: CollectiveRequest, sizes: SizeRange, output: CollectiveOutput) -> str:
    """Measured times beside those of NCCL's constants, and beside those of a profile if there is one."""
    from simperf.calibrate.measured_sizes import SizeRow, read_measured

    choice = request.machine
    assert output.measured is not None
    log = read_measured(output.measured, request.collective, ranks=choice.ranks or 0)
    if choice.ranks is None and choice.server and choice.nodes == 1:
        choice = replace(choice, ranks=log.ranks)
    fitted = replace(request, machine=choice).comparison()
    plain = fitted
    if choice.profile is not None:
        plain = replace(request, machine=replace(choice, profile=None)).comparison()
    payloads = _measured_sizes(log, sizes, len(plain.built.ranks), request.given)
    before = plain.tables(payloads).rows
    after = fitted.tables(payloads).rows if fitted is not plain else {}
    texts, listed = [_header(fitted, request)], []
    for name, rows in before.items():
        own = after.get(name, [None] * len(rows))
        table = [
            SizeRow(row.nbytes, log.times[round(row.nbytes)], row.time, other.time if other is not None else None)
            for row, other in zip(rows, own, strict=True)
        ]
        texts.append(tables.format_measured(table, title=f"{name}, beside {log.file}"))
        listed += [{"algorithm": name, **one} for one in tables.measured_rows(table)]
    if output.form == "table":
        return fold_comments("\n".join(texts))
    return rows_text(listed, output.form, units={"size": "B", "measured": "s", "predicted": "s", "profile": "s"})


def _measured_sizes(log: MeasuredSizes, sizes: SizeRange, ranks: int, given: Collection[str]) -> list[int]:
    """Sizes of a log between those that were typed [B]."""
    from simperf.calibrate.measured_sizes import spread_sizes

    if ranks != log.ranks:
        message = f"times among {log.ranks} ranks, and {ranks} take part"
        raise InputError(Problem(message, file=log.file, key="--ranks", expected=f"--ranks {log.ranks}"))
    doubled = replace(sizes, factor=2.0, step="")
    first = doubled.sizes()[0] if "low" in given else 0
    last = replace(doubled, low=sizes.high).sizes()[0] if "high" in given else max(log.times)
    found = spread_sizes([size for size in log.times if first <= size <= last])
    if not found:
        raise InputError(
            Problem(
                "no measured size lies between -b and -e",
                file=log.file,
                value=f"{first} to {last} B",
                expected="a range with a size of the log in it",
            )
        )
    return found
