"""The result of a run: metrics, where the time went, lower bounds, timeline, and where it all comes from."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal, NamedTuple

from simperf.answer import TIME, Answer
from simperf.engine.recorder import Arrow, Sample, Span
from simperf.errors import FloorError, InputError, Problem, UnknownNameError
from simperf.files import TomlFile, write_packed
from simperf.time_use import RankClass, TimeUse, time_use
from simperf.units import format_quantity

__all__ = ["Ceiling", "Metric", "OperationUse", "ResourceUse", "Result"]

#: A result may undercut its floor by rounding only.
_ROUNDING = 1e-9

#: digits of an interval's ends
_DIGITS = 3

Origin = Literal["simulated", "measured", "fitted", "source"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One number of a result, in the SI unit `unit`, with where it comes from and its interval if it has one."""

    value: float
    unit: str
    origin: Origin = "simulated"
    low: float | None = None
    high: float | None = None

    def __str__(self) -> str:
        text = format_quantity(self.value, self.unit)
        if self.low is not None and self.high is not None:
            low, high = (format_quantity(end, self.unit, digits=_DIGITS) for end in (self.low, self.high))
            text += f" [{low} .. {high}]"
        return text


@dataclass(frozen=True, slots=True)
class ResourceUse:
    """The use of one resource.

    Parameters
    ----------
    kind : str
        ``"device"``, ``"host"``, ``"link"`` or ``"memory"``.
    capacity : float
        Devices: 1; hosts: cores; links: B/s; memories: their size [B].
    work : float
        Devices and hosts: seconds of the whole capacity's unit; links: bytes moved [B];
        memories: the most that was held [B].
    """

    kind: str
    capacity: float
    work: float

    def utilisation(self, time: float) -> float:
        """Share of what it could have done in `time` [s]; 0 for unlimited resources."""
        if time <= 0 or not math.isfinite(self.capacity) or self.capacity <= 0:
            return 0.0
        return self.work / (self.capacity if self.kind == "memory" else self.capacity * time)


class OperationUse(NamedTuple):
    """One operation as it runs alone on one device: a point of the roofline.

    `flops` [FLOP], `nbytes` [B] and `time` [s] are those of one of its `calls`;
    `regime` is ``"compute"``, ``"memory"`` or ``"overhead"``.
    """

    name: str
    device: str
    dtype: str
    calls: int
    flops: float
    nbytes: float
    time: float
    regime: str


class Ceiling(NamedTuple):
    """Limits of a device: the lines of the roofline.

    `part` is its name in the catalog; `memory_bandwidth` [B/s]; `peak` the rate by precision [FLOP/s].
    """

    part: str
    memory_bandwidth: float
    peak: Mapping[str, float]


@dataclass(frozen=True)
class Result:
    """The outcome of one run; saved and loaded without loss.

    Parameters
    ----------
    name : str
    time : float
        How long the program took [s].
    floors : mapping of str to float
        Times [s] that physics does not let the run beat, by what sets them.
    metrics : mapping of str to Metric
        Everything else that was asked for, such as throughput or memory.
    resources : mapping of str to ResourceUse
    spans, samples, arrows : sequence
        The timeline, empty when nobody recorded it.
    question : str
        What the scenario asks.
    answer : Answer or None
        The number that answers it; None ranks by time.
    work : mapping of str to Metric
        How much work was done, by what it is counted in; empty if the program does not say.
    scenario : mapping
        The inputs, as they were after all overrides.
    seed : int
    modelled, not_modelled : sequence of str
        What the number contains and what it leaves out, in words.
    sources : mapping of str to str
        Where the inputs' numbers come from.
    assumed : mapping of str to str
        Options that a software stack set, with their sources.
    operations : sequence of OperationUse
        The kernels' costs, where the program's operations are known.
    ceilings : mapping of str to Ceiling
        By device, for the roofline.
    notes : sequence of str
        What the program itself has to say about the run.
    intervals : mapping of str to (float, float)
        90 % intervals of ``"time"`` and of metrics, in their units: of what published figures of runs like this are
        off (`simperf.analysis.intervals`), and of bootstrap samples (`simperf.study.uncertainty`).
    interval_sources : mapping of str to str
        What the intervals are made of, in words.
    no_interval : str
        Why there are none of published figures; empty if there are.
    draws : mapping of str to sequence of float
        The draws themselves, in order; the same number stands for the same constants in every result.
    unused : mapping of str to Problem
        Profiles that changed nothing, and what each holds and what would take it.
    ranks : mapping of str to RankClass
        By each device that was simulated for several ranks: these, and how they communicate.
    memory : sequence of Sample
        Memory by kind over time: device, kind, the time [s] from which so much is held, and how much [B].
    given_times : sequence of TimeUse
        `times` of a run without a timeline, where they are known.

    Raises
    ------
    FloorError
        The time is below a lower bound: the model is wrong, and no answer is given.
    """

    name: str
    time: float
    floors: Mapping[str, float] = field(default_factory=dict)
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    resources: Mapping[str, ResourceUse] = field(default_factory=dict)
    spans: tuple[Span, ...] = ()
    samples: tuple[Sample, ...] = ()
    arrows: tuple[Arrow, ...] = ()
    question: str = ""
    answer: Answer | None = None
    work: Mapping[str, Metric] = field(default_factory=dict)
    scenario: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    version: str = ""
    modelled: tuple[str, ...] = ()
    not_modelled: tuple[str, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)
    assumed: Mapping[str, str] = field(default_factory=dict)
    operations: tuple[OperationUse, ...] = ()
    ceilings: Mapping[str, Ceiling] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    interval_sources: Mapping[str, str] = field(default_factory=dict)
    no_interval: str = ""
    draws: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    unused: Mapping[str, Problem] = field(default_factory=dict)
    ranks: Mapping[str, RankClass] = field(default_factory=dict)
    memory: tuple[Sample, ...] = ()
    given_times: tuple[TimeUse, ...] = ()

    def __post_init__(self) -> None:
        if not math.isfinite(self.time) or self.time < 0:
            raise FloorError(f"{self.name}: the simulated time is {self.time} s, which no machine can take")
        name, floor = self.floor
        if self.time < floor * (1 - _ROUNDING):
            raise FloorError(
                f"{self.name}: the simulated {format_quantity(self.time, 's')} is below its lower bound of "
                f"{format_quantity(floor, 's')} ({name}); this is a defect of the model, please report it"
            )

    def __repr__(self) -> str:
        return f"<Result {self.name!r}: {format_quantity(self.time, 's')}, {len(self.metrics)} metrics>"

    @property
    def times(self) -> tuple[TimeUse, ...]:
        """Use of each rank's time by stage, dimension, class of ranks and activity; empty without a timeline."""
        return time_use(self.spans, self.ranks) if self.spans else self.given_times

    @property
    def has_stages(self) -> bool:
        """Whether ranks are stages of a pipeline, and the timeline is there."""
        return bool(self.spans) and len({one.stage for one in self.ranks.values()}) > 1

    @property
    def floor(self) -> tuple[str, float]:
        """The highest lower bound: what sets it, and the time [s]."""
        if not self.floors:
            return "none", 0.0
        return max(self.floors.items(), key=lambda item: item[1])

    @property
    def headline(self) -> tuple[str, Metric]:
        """The number that answers the question, with its name: the time if nothing else was asked for, or is there."""
        name = self.answer.metric if self.answer and self.answers else TIME
        return name, self.number(name)

    @property
    def answers(self) -> bool:
        """Whether it has the number that is asked for; a variant of a comparison may lack what others have."""
        return self.answer is None or self.has(self.answer.metric)

    def has(self, name: str) -> bool:
        """Whether `number` knows this name."""
        return name == TIME or name in self.metrics

    def number(self, name: str) -> Metric:
        """The time or a metric, with its interval.

        Raises
        ------
        KeyError
            No such metric.
        """
        if name != TIME:
            return self.metrics[name]
        low, high = self.intervals.get(TIME, (None, None))
        return Metric(self.time, "s", low=low, high=high)

    def plot(self, path: str | os.PathLike[str] | None = None, kind: str = "overview") -> Any:
        """Draw the run, and write the picture to `path` if there is one.

        Parameters
        ----------
        path : path, optional
            PNG, SVG or PDF by its end.
        kind : {"overview", "gantt", "queue", "memory", "roofline", "pipeline", "stages"}
            What to draw; the overview is the timeline above queue and memory. Of a model that a layout divides, the
            pipeline has the passes of each stage, the stages where a step of each goes, and memory is by kind.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        InputError
            The run did not record what the picture shows; the name says no picture.
        UnknownNameError
            No such kind.
        """
        from simperf.outputs import drawn, report_module

        return drawn(report_module("plots").draw(self, kind), path)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write a page that needs no network: the answer, where the time went, the timeline, inputs and sources.

        Raises
        ------
        InputError
            The name does not end in ``.html``, or the file cannot be written.
        """
        from simperf.outputs import write_page

        write_page(path, lambda pages: pages.result_report(self, machine=pages.machine_of(self)))

    def trace(self, path: str | os.PathLike[str], *, ranks: Sequence[int] | None = None) -> None:
        """Write the timeline for https://ui.perfetto.dev and chrome://tracing, gzipped if the name ends in ``.gz``.

        Parameters
        ----------
        path : str or path-like
        ranks : sequence of int, optional
            Ranks that are shown, and nothing else. One that was not simulated is shown by that of its class which was.

        Raises
        ------
        InputError
            The run was not recorded; the name does not end in ``.json`` or ``.json.gz``; there are no such ranks.
        """
        from simperf.outputs import DATA, check_name, report_module

        check_name(path, DATA)
        if not self.spans:
            message = f"{self.name}: there is no timeline to write"
            raise InputError(Problem(message, expected="a run whose timeline was recorded (record=True)"))
        report_module("trace").save_trace(self, path, ranks=ranks)

    def to_pandas(self, table: str = "numbers") -> Any:
        """A table of the result as a `pandas.DataFrame`, which the extra ``tables`` brings.

        Parameters
        ----------
        table : {"numbers", "times", "memory", "timeline", "samples", "resources", "operations"}
            ``numbers`` are the time, the metrics and the amounts of work; ``times`` where each rank's time went;
            ``memory`` what is held by kind over time; ``timeline`` the spans; ``samples`` the counters over time;
            ``resources`` what each did; ``operations`` the cost of each alone. All in SI units.

        Raises
        ------
        InputError
            pandas is not installed.
        UnknownNameError
            No such table.
        """
        if not isinstance(table, str) or table not in _TABLES:
            raise UnknownNameError("table of a result", table, _TABLES)
        columns, rows = _TABLES[table]
        from simperf.outputs import data_frame

        return data_frame((dict(zip(columns, row, strict=True)) for row in rows(self)), columns)

    def _repr_html_(self) -> str:
        from simperf.outputs import report_module

        return str(report_module("notebook").result_html(self))

    def to_dict(self) -> dict[str, Any]:
        """Plain data as the file has it (`simperf.result_file`), every quantity an SI number."""
        from simperf.json_format import FORMAT
        from simperf.result_file import written

        rows = ("spans", "samples", "arrows", "operations", "memory")
        plain = ("floors", "scenario", "sources", "assumed", "intervals", "interval_sources", "draws")
        data: dict[str, Any] = {"format": FORMAT}
        data |= {each.name: getattr(self, each.name) for each in fields(self) if each.name != "given_times"}
        data |= {key: [list(row) for row in data[key]] for key in rows}
        data |= {key: dict(data[key]) for key in plain}
        data["answer"] = self.answer.to_dict() if self.answer else None
        data["times"] = [row._asdict() for row in self.times]
        data["ranks"] = {key: one._asdict() for key, one in self.ranks.items()}
        data["ceilings"] = {key: [part, rate, dict(peak)] for key, (part, rate, peak) in self.ceilings.items()}
        for key in ("metrics", "work", "resources", "unused"):
            data[key] = {name: asdict(one) for name, one in data[key].items()}
        for key in ("floors", "metrics", "work", "resources", "ceilings", "intervals", "draws", "operations"):
            data[key] = written(data[key])
        return data

    def to_bytes(self) -> bytes:
        """The saved form: JSON with sorted keys; the same result gives the same bytes."""
        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        return text.encode("utf-8")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to `path`, gzipped if it ends in ``.gz``; whole or not at all."""
        write_packed(path, self.to_bytes())

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], *, file: str | TomlFile = "") -> Result:
        """Inverse of `to_dict`; reads what was written before format 1 too.

        Parameters
        ----------
        data : mapping
        file : str or TomlFile
            Where it comes from, for messages.

        Raises
        ------
        InputError
            It is not a saved result, or one of another format.
        """
        from simperf.result_file import read_result

        known = read_result(data, file=file)
        del known["format"]
        known["answer"] = Answer(**known["answer"]) if known["answer"] else None
        for key, kind in (("metrics", Metric), ("work", Metric), ("resources", ResourceUse), ("unused", Problem)):
            known[key] = {name: kind(**one) for name, one in known[key].items()}
        known["ranks"] = {name: RankClass(**one) for name, one in known["ranks"].items()}
        for key, row in (("spans", Span), ("samples", Sample), ("arrows", Arrow), ("memory", Sample)):
            known[key] = tuple(row(*each) for each in known[key])
        known["operations"] = tuple(OperationUse(*row) for row in known["operations"])
        known["ceilings"] = {key: Ceiling(*row) for key, row in known["ceilings"].items()}
        times = known.pop("times")
        known["given_times"] = () if known["spans"] else tuple(TimeUse(**row) for row in times)
        return cls(**known)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Result:
        """Read what `save` wrote.

        Raises
        ------
        InputError
            The file is missing, not a saved result, or of another format.
        """
        expected = "what `simperf run --save` wrote"
        if not isinstance(path, str | os.PathLike):
            raise InputError(Problem("the path of a saved result is expected", value=repr(path), expected=expected))
        name = str(os.fspath(path))
        if not name.endswith((".json", ".json.gz")):
            expected += "; `simperf run FILE` runs a scenario"
        from simperf.json_file import read_json

        try:
            saved = read_json(name, what="not a saved result", expected=expected)
            return cls.from_dict(saved.data, file=saved)
        except InputError as error:
            raise InputError([replace(one, expected=one.expected or expected) for one in error.problems]) from None
        except FloorError as error:
            raise InputError(Problem(f"not a saved result: {error}", file=name, expected=expected)) from None


def _numbers(result: Result) -> Iterator[tuple[Any, ...]]:
    for name, metric in ((TIME, result.number(TIME)), *result.metrics.items()):
        yield name, metric.value, metric.unit, metric.origin, metric.low, metric.high
    for name, amount in result.work.items():
        yield f"work: {name}", amount.value, amount.unit, amount.origin, None, None


def _resources(result: Result) -> Iterator[tuple[Any, ...]]:
    for name, use in result.resources.items():
        yield name, use.kind, use.capacity, use.work, use.utilisation(result.time)


#: tables of a result: columns, and the rows of one
_TABLES: dict[str, tuple[tuple[str, ...], Callable[[Result], Iterator[tuple[Any, ...]]]]] = {
    "numbers": (("name", "value", "unit", "origin", "low", "high"), _numbers),
    "timeline": (Span._fields, lambda result: iter(result.spans)),
    "samples": (Sample._fields, lambda result: iter(result.samples)),
    "resources": (("name", "kind", "capacity", "work", "utilisation"), _resources),
    "operations": (OperationUse._fields, lambda result: iter(result.operations)),
    "times": (TimeUse._fields, lambda result: iter(result.times)),
    "memory": (("device", "kind", "time", "nbytes"), lambda result: iter(result.memory)),
}
