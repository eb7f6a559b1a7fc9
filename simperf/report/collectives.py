"""Tables of collectives, as nccl-tests writes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from simperf.collectives.bench import Row, switch_points
from simperf.report.collective_intervals import CollectiveIntervals
from simperf.report.terminal import columns

if TYPE_CHECKING:
    from simperf.calibrate.measured_sizes import SizeRow

__all__ = [
    "IDEALISED",
    "format_measured",
    "format_rows",
    "format_winners",
    "measured_rows",
    "nccl_document",
    "rows_csv",
    "rows_document",
    "size_text",
]

#: what is said of rows that no library stands behind
IDEALISED = "idealised: bandwidth and latency of the wires only, no library"

#: version of the layout that `nccl_document` writes
JSON_VERSION = 2


def size_text(nbytes: float) -> str:
    """Write a size with the suffixes of nccl-tests: K, M and G are powers of 1024.

    Examples
    --------
    >>> size_text(8), size_text(104857600), size_text(1 << 30), size_text(1000)
    ('8', '100M', '1G', '1000')
    """
    for suffix, unit in (("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)):
        if nbytes >= unit and nbytes % unit == 0:
            return f"{nbytes / unit:.0f}{suffix}"
    return f"{nbytes:.0f}"


def _time(value: float) -> str:
    """A time in us as nccl-tests writes it: seven characters, fewer digits the larger it is."""
    us = value * 1e6
    return f"{us:.2f}" if us < 1e4 else f"{us:.1f}" if us < 1e5 else f"{us:.0f}"


def format_rows(rows: Sequence[Row], *, title: str) -> str:
    """Rows of one algorithm as a table: bytes, time and lower bound in us, bandwidths in GB/s (1e9 B/s).

    Of NCCL's rows it shows what it chose in place of the bound.
    """
    if rows and not rows[0].idealised:
        return _library_rows(rows, title)
    lines = [
        f"# {title}, {IDEALISED}",
        f"# {'size':>10} {'time':>9} {'algbw':>7} {'busbw':>7} {'bound':>9} {'load':>5}  limited by",
        f"# {'(B)':>10} {'(us)':>9} {'(GB/s)':>7} {'(GB/s)':>7} {'(us)':>9} {'(%)':>5}",
    ]
    numbers = [
        f"  {row.nbytes:>10.0f} {_time(row.time):>9} {row.algbw / 1e9:>7.2f} {row.busbw / 1e9:>7.2f} "
        f"{_time(row.floor):>9} {100 * row.load:>5.1f}"
        for row in rows
    ]
    full = [row.link if row.load >= 0.5 else ", ".join(filter(None, ("latency", row.link))) for row in rows]
    short = [row.link if row.load >= 0.5 else "latency" for row in rows]
    return "\n".join([*lines, *_with_links(numbers, full, short)])


def _library_rows(rows: Sequence[Row], title: str) -> str:
    """Rows of NCCL, with its choice."""
    rings = " with rings alone" if title == "nccl-ring" else ""
    wide = max(len("chosen"), *(len(row.choice) for row in rows))
    lines = [
        f"# {title}: as NCCL would{rings}, algorithm/protocol chosen for each size",
        f"# {'size':>10} {'time':>9} {'algbw':>7} {'busbw':>7}  {'chosen':<{wide}} {'chan-':>5} {'load':>5}  busiest",
        f"# {'(B)':>10} {'(us)':>9} {'(GB/s)':>7} {'(GB/s)':>7}  {'':<{wide}} {'nels':>5} {'(%)':>5}  link",
    ]
    numbers = [
        f"  {row.nbytes:>10.0f} {_time(row.time):>9} {row.algbw / 1e9:>7.2f} {row.busbw / 1e9:>7.2f}  "
        f"{row.choice:<{wide}} {row.channels:>5} {100 * row.load:>5.1f}"
        for row in rows
    ]
    links = [row.link for row in rows]
    return "\n".join([*lines, *_with_links(numbers, links, links)])


def _with_links(lines: Sequence[str], full: Sequence[str], short: Sequence[str]) -> list[str]:
    """Lines with what limits each, in full where the screen has room, or else below the line."""
    width = columns()
    for words in (full, short):
        made = [f"{line}  {word}".rstrip() for line, word in zip(lines, words, strict=True)]
        if max(map(len, made), default=0) <= width:
            return made
    return [part for line, word in zip(lines, full, strict=True) for part in (line, f"#   {word}")]


def format_winners(best: Sequence[Row]) -> str:
    """The fastest idealised algorithm of each size, and the sizes at which the winner changes."""
    lines = [
        f"# fastest, {IDEALISED}",
        f"# {'size':>12}  {'time':>10}  {'busbw':>8}  fastest",
        f"# {'(B)':>12}  {'(us)':>10}  {'(GB/s)':>8}",
    ]
    lines += [f"  {row.nbytes:>12.0f}  {_time(row.time):>10}  {row.busbw / 1e9:>8.2f}  {row.algorithm}" for row in best]
    runs = switch_points(best)
    spans = [(name, size_text(low), size_text(high)) for name, low, high in runs]
    lines.append("# " + "; ".join(f"{n} at {a}" if a == b else f"{n} from {a} to {b}" for n, a, b in spans))
    return "\n".join(lines)


def rows_csv(rows: Sequence[Row]) -> str:
    """Rows as CSV, every quantity in SI units."""
    lines = [
        "algorithm,size_B,time_s,algbw_B_per_s,busbw_B_per_s,lower_bound_s,binding_link,load,"
        "executor,idealised,choice,channels"
    ]
    for row in rows:
        numbers = (round(row.nbytes), row.time, row.algbw, row.busbw, row.floor)
        kind = ("true" if row.idealised else "false", row.choice, str(row.channels))
        lines.append(",".join([row.algorithm, *map(repr, numbers), row.link, repr(row.load), row.method, *kind]))
    return "\n".join(lines)


def rows_document(rows: Sequence[Row], intervals: CollectiveIntervals) -> list[dict[str, Any]]:
    """Rows as data for JSON, every quantity an SI number, each with its interval or why it has none."""
    return [
        {
            "algorithm": row.algorithm,
            "size": round(row.nbytes),
            "time": row.time,
            "algbw": row.algbw,
            "busbw": row.busbw,
            "floor": row.floor,
            "binding_link": row.link,
            "load": row.load,
            "executor": row.method,
            "idealised": row.idealised,
            **({} if row.idealised else {"choice": row.choice, "channels": row.channels}),
            "time_interval": intervals.ends(row),
            "no_interval": intervals.reason(row),
        }
        for row in rows
    ]


def nccl_document(
    rows: Sequence[Row], *, args: Sequence[str], factor: float = 0.0, step: int = 0, ngpus: int = 1
) -> dict[str, Any]:
    """Rows in the layout of the JSON file of nccl-tests (``-J``, version 2; src/util.cu there).

    Times are us, bandwidths GB/s. What is simulated is neither in place nor out of place,
    so that both say the same; iterations are one, and nothing is ever wrong. The
    algorithm stands in ``experiment_name``.
    """
    sizes = [row.nbytes for row in rows]
    results = []
    for row in rows:
        body = {
            "time": round(row.time * 1e6, 6),
            "alg_bw": round(row.algbw / 1e9, 6),
            "bus_bw": round(row.busbw / 1e9, 6),
            "nwrong": 0.0,
        }
        results.append(
            {
                "size": int(row.nbytes),
                "count": int(row.nbytes) // 4,
                "type": "float",
                "redop": "sum",
                "root": "    -1",
                "out_of_place": body,
                "in_place": dict(body),
                "actual_iterations": 1,
                "experiment_name": row.algorithm,
            }
        )
    mean = sum(row.busbw for row in rows) / len(rows) / 1e9 if rows else 0.0
    return {
        "version": JSON_VERSION,
        "args": list(args),
        "env": [],
        "nccl_version": 0,
        "config": {
            "nthreads": 1,
            "ngpus": ngpus,
            "minimum_bytes": int(min(sizes, default=0)),
            "maximum_bytes": int(max(sizes, default=0)),
            **({"step_bytes": step} if step else {"step_factor": int(factor) if factor == int(factor) else factor}),
            "warmup_iters": 0,
            "iterations": 1,
            "aggregated_iterations": 1,
            "validation": 0,
            "graph": 0,
            "blocking_collectives": "false",
            "per_iter_timing": "false",
            "parallel_init": "false",
            "devices": [],
        },
        "results": results,
        "out_of_bounds": {"count": 0, "okay": "true"},
        "average_bus_bandwidth": {"bandwidth": round(mean, 6), "okay": "unchecked"},
        "errors": [],
    }


def format_measured(rows: Sequence[SizeRow], *, title: str) -> str:
    """Measured beside predicted times in us, with the errors of the prediction and of that with a profile."""
    from simperf.calibrate.measured_sizes import summary

    with_profile = any(row.fitted is not None for row in rows)
    head = f"# {'size':>12}  {'measured':>10}  {'predicted':>10}  {'error':>7}"
    units = f"# {'(B)':>12}  {'(us)':>10}  {'(us)':>10}  {'':>7}"
    more = (f"  {'profile':>10}  {'error':>7}", f"  {'(us)':>10}") if with_profile else ("", "")
    lines = [f"# {title}", head + more[0], units + more[1]]
    for row in rows:
        line = f"  {row.nbytes:>12.0f}  {_time(row.measured):>10}  {_time(row.predicted):>10}  {row.error:>+7.1%}"
        if row.fitted is not None and row.fitted_error is not None:
            line += f"  {_time(row.fitted):>10}  {row.fitted_error:>+7.1%}"
        lines.append(line)
    return "\n".join([*lines, f"# {summary(rows)}"])


def measured_rows(rows: Sequence[SizeRow]) -> list[dict[str, Any]]:
    """The same as data, every quantity an SI number."""
    found = []
    for row in rows:
        one: dict[str, Any] = {"size": round(row.nbytes), "measured": row.measured, "predicted": row.predicted}
        one["error"] = row.error
        if row.fitted is not None:
            one |= {"profile": row.fitted, "profile_error": row.fitted_error}
        found.append(one)
    return found
