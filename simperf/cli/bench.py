"""What the options of `simperf collective` stand for: a machine, its ranks, algorithms and sizes."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simperf.analysis.scaling import Scaling
    from simperf.collectives import Transport, Wired
    from simperf.collectives.bench import Row

__all__ = ["Bench"]


@dataclass(slots=True)
class Bench:
    """A collective, ready to be timed.

    Parameters
    ----------
    collective : str
        Which one.
    algorithms : tuple of str
        The ways to do it.
    place : mapping
        The machine's options as they were given.
    options : mapping
        Options of the algorithms; each gets those that it knows.
    protocol : str
        Protocol variant, empty for none.
    transport : Transport
        Without the protocol's part.
    exact : bool
        Force the step-exact executor.
    chosen : bool
        The algorithms were named, and not just all of them.
    late, background : tuple of str
        As `simperf.cli.traffic` reads them.
    """

    collective: str
    algorithms: tuple[str, ...]
    place: Mapping[str, Any]
    options: Mapping[str, Any]
    protocol: str
    transport: Transport
    exact: bool
    chosen: bool
    late: tuple[str, ...] = ()
    background: tuple[str, ...] = ()
    machine: Wired = field(init=False)
    ranks: tuple[str, ...] = field(init=False)
    refusals: list[str] = field(default_factory=list)

    @classmethod
    def build(
        cls,
        collective: str,
        *,
        place: Mapping[str, Any],
        algo: str,
        options: Mapping[str, Any],
        protocol: str,
        step_latency: str,
        reduce_rate: str,
        exact: bool,
        late: Sequence[str] = (),
        background: Sequence[str] = (),
        given: Collection[str] = (),
    ) -> Bench:
        """Read the options, and tell all that is wrong with them; `given` are those that were typed."""
        from simperf.cli.nccl_options import refuse_options
        from simperf.cli.quantities import Quantities
        from simperf.cli.seating import refuse_unread, seat
        from simperf.collectives import Transport, algorithms
        from simperf.collectives.settings import NCCL

        known = algorithms(collective)
        refuse_unread(place, given)
        read = Quantities()
        transport = Transport(
            step_latency=read(step_latency, "s", option="--step-latency"),
            reduce_rate=read(reduce_rate, "B/s", option="--reduce-rate") if reduce_rate else float("inf"),
        )
        rates = {
            "bandwidth": read(place["bandwidth"], "B/s", option="--bandwidth"),
            "latency": read(place["latency"], "s", option="--latency"),
        }
        read.refuse()
        place = {**place, **rates}
        servers = int(options.get("servers", 0))
        machine, ranks = seat(place, ranks=place["ranks"], nodes=place["nodes"], servers=servers)
        names = _named(algo, collective, known, machine, ranks)
        chosen = algo != "all"
        refuse_options(collective, names, {**options, "protocol": protocol}, typed=given, exact=exact and chosen)
        _refuse_costs(
            machine,
            {
                "--step-latency": step_latency if transport.step_latency > 0.0 else "",
                "--reduce-rate": reduce_rate,
                "--protocol": protocol if set(names).isdisjoint(NCCL) else "",
            },
        )
        made = cls(collective, names, place, options, protocol, transport, exact, chosen)
        made.late, made.background, made.machine, made.ranks = tuple(late), tuple(background), machine, ranks
        return made

    def seat(self, ranks: int | None, nodes: int) -> tuple[Wired, tuple[str, ...]]:
        """The machine, with so many servers if it is made of servers, and the nodes of the ranks."""
        from simperf.cli.seating import seat

        return seat(self.place, ranks=ranks, nodes=nodes, servers=int(self.options.get("servers", 0)))

    def sizes(self, low: str, high: str, *, factor: float, step: str) -> list[int]:
        """Sizes that the options -b, -e, -f and -i ask for [B]."""
        from simperf.cli.quantities import Quantities
        from simperf.collectives.bench import sizes_between
        from simperf.errors import InputError, Problem

        read = Quantities()
        first, last = read.size(low, option="-b"), read.size(high, option="-e")
        by = read.size(step, option="-i") if step else 0
        read.refuse()
        if step and not by:
            raise InputError(Problem("sizes grow by a step of at least one byte", key="-i", value=step))
        return sizes_between(first, last, factor=factor, step=by)

    def run(self, sizes: Sequence[int]) -> dict[str, list[Row]]:
        """A table for each algorithm; those that cannot run here are told in `refusals`, unless asked for."""
        from simperf.cli.traffic import background_traffic, entry_times
        from simperf.collectives.effort import ASKED, SURVEY
        from simperf.errors import InputError, MachineError, UnknownNameError

        beside = {
            "entry_times": entry_times(self.late, self.ranks),
            "background": background_traffic(self.background, self.machine),
            "effort": ASKED if self.chosen else SURVEY,
        }
        tables = {}
        for name in self.algorithms:
            try:
                tables[name] = self._table(name, sizes, beside)
            except (InputError, MachineError, UnknownNameError) as error:
                if self.chosen:
                    raise
                self._leave_out(name, name, error)
        self._refuse_unused(tables)
        return tables

    def _refuse_unused(self, tables: Mapping[str, Sequence[Row]]) -> None:
        """Refuse a profile that changes none of the tables."""
        from simperf.errors import InputError
        from simperf.study.collective import refuse_unused_profile

        profile, wrong = self.place.get("profile"), []
        if profile is None:
            return
        for name, rows in tables.items():
            try:
                refuse_unused_profile(
                    profile, self.machine, self.collective, name, self.ranks, rows, self.place["changed"]
                )
            except InputError as error:
                wrong.append(error)
        if wrong and len(wrong) == len(tables):
            raise wrong[0]

    def _leave_out(self, what: str, name: str, error: Exception) -> None:
        from simperf.collectives.effort import EffortError

        force = f"; --algo {name} grants it more, and --exact all" if isinstance(error, EffortError) else ""
        said = "; ".join(_line(problem) for problem in getattr(error, "problems", (error,)))
        line = f"{what}: {said}{force}"
        if line not in self.refusals:
            self.refusals.append(line)

    def _table(self, name: str, sizes: Sequence[int], beside: Mapping[str, Any]) -> list[Row]:
        """Rows by size."""
        from simperf.cli.nccl_options import options_taken
        from simperf.collectives.settings import NCCL
        from simperf.study.collective import collective

        known = options_taken(self.collective, name)
        options: dict[str, Any] = {key: value for key, value in self.options.items() if key in known}
        if name not in NCCL:
            options["transport"] = self.transport
        profile = self.place.get("profile")
        if profile is not None:
            from simperf.scenario.calibration import measured_collectives

            options["measured"] = measured_collectives((profile,))
        table = collective(
            self.collective,
            on=self.machine,
            sizes=sizes,
            algorithm=name,
            ranks=self.ranks,
            protocol=self.protocol,
            exact=self.exact,
            **beside,
            **options,
        )
        return list(table)

    def header(self) -> str:
        """What the table is about, as comments."""
        from simperf.cli.nccl_options import settings_lines
        from simperf.units import format_quantity

        place = self.place
        name, count = getattr(self.machine, "name", ""), len(self.ranks)
        lines = [f"# simperf collective {self.collective}: {count} rank{'' if count == 1 else 's'} on {name}"]
        if place["wiring"]:
            rate = format_quantity(self.machine.bandwidth, "B/s")  # type: ignore[attr-defined]
            wait = format_quantity(self.machine.latency, "s")  # type: ignore[attr-defined]
            crossed = "; a route crosses two, r0> from rank 0 and >r0 to it" if place["wiring"] == "star" else ""
            lines.append(f"# every link {rate} each way, {wait}{crossed}")
        if place.get("profile") is not None:
            lines.append(f"# profile {place['profile'].name}: {place['profile'].title}")
        lines += settings_lines(self.algorithms, self.options, self.protocol)
        lines += [f"# late: {word}" for word in self.late] + [f"# background: {word}" for word in self.background]
        lines.append("# simulated; K, M, G are powers of 1024, as in nccl-tests; GB/s are 1e9 B/s")
        return "\n".join(lines)

    def draw_load(self, path: Path, tables: Mapping[str, Sequence[Row]]) -> None:
        """Draw the machine with the load of every link under the largest size of the first algorithm."""
        from simperf.hardware import Machine

        if not tables:
            return
        name, rows = next(iter(tables.items()))
        if isinstance(self.machine, Machine):
            from simperf.report.collectives import size_text
            from simperf.report.topology import save_topology

            what = f"load of the links under {name} {self.collective} of {size_text(rows[-1].nbytes)}"
            save_topology(self.machine, path, load=rows[-1].loads, subtitle=what)
        else:
            from simperf.report.collectives import wiring_picture
            from simperf.report.style import save

            save(wiring_picture(self.machine, rows[-1], title=f"{self.collective}, {name}"), path)

    def scaling(self, size: int, tables: Mapping[str, Sequence[Row]]) -> list[Scaling]:
        """How each algorithm of `tables` scales at one size [B]: on fewer ranks, or fewer servers of a cluster.

        The ideal is the floor, the time that no algorithm can beat. What takes too long or does not fit is left out.
        """
        from simperf.analysis.scaling import Scaled, Scaling
        from simperf.collectives.effort import MAP
        from simperf.errors import SimperfError
        from simperf.study.scaling import halvings

        if self.late or self.background or self.place["cluster"]:
            return []
        machine, ranks = self.machine, self.ranks
        by_server = not self.place["wiring"] and self.place["nodes"] > 1
        points = {
            name: [Scaled(len(ranks), row.time, row.floor) for row in rows if row.nbytes == size]
            for name, rows in tables.items()
        }
        try:
            for count in halvings(self.place["nodes"] if by_server else len(ranks)):
                self.machine, self.ranks = self.seat(None, count) if by_server else self.seat(count, 1)
                for name, line in points.items():
                    if len(self.ranks) > 1:
                        with contextlib.suppress(SimperfError):
                            (row,) = self._table(name, [size], {"effort": MAP})
                            line.append(Scaled(len(self.ranks), row.time, row.floor))
        finally:
            self.machine, self.ranks = machine, ranks
        ideal = "the floor, the time that no algorithm can beat"
        lines = [Scaling("ranks", name, "time", ideal, tuple(sorted(line))) for name, line in points.items()]
        return [line for line in lines if len(line.points) > 1]

    def draw_map(self, path: Path, sizes: Sequence[int]) -> None:
        """Draw which idealised algorithm wins over numbers of ranks and sizes, or what NCCL chooses if it is named."""
        from simperf.cli.nccl_options import flag, options_taken
        from simperf.collectives.bench import best_rows
        from simperf.collectives.settings import NCCL
        from simperf.errors import InputError, Problem
        from simperf.report.collectives import crossover_map
        from simperf.report.style import save

        if self.late or self.background:
            key = "--late" if self.late else "--background"
            raise InputError(Problem("a map is over many numbers of ranks and has no place for this", key=key))
        ideal = [name for name in self.algorithms if name not in NCCL]
        if self.chosen and 0 < len(ideal) < len(self.algorithms):
            message = "a map compares idealised algorithms, or shows what NCCL chooses"
            value = ",".join(self.algorithms)
            raise InputError(Problem(message, key="--algo", value=value, expected="either, not both"))
        unread = [flag(key) for key in options_taken(self.collective, "nccl") if ideal and key in self.options]
        if unread:
            message = "a map of idealised algorithms does not read this"
            raise InputError([Problem(message, key=key, expected="--algo nccl") for key in unread])
        wired = bool(self.place["wiring"])
        most = len(self.ranks) if wired else self.place["nodes"]
        counts = sorted({min(2**power, most) for power in range(1 if wired else 0, most.bit_length() + 1)})
        winners = {}
        for count in counts:
            self.machine, self.ranks = self.seat(count, 1) if wired else self.seat(None, count)
            if len(self.ranks) < 2:
                continue
            rows = {}
            for name in ideal or self.algorithms:
                table = self._cells(name, sizes)
                if table:
                    rows[name] = table
            if rows:
                winners[len(self.ranks)] = [
                    replace(row, algorithm=row.choice or row.algorithm) for row in best_rows(rows)
                ]
        where = f"a {self.place['wiring']}" if wired else self.place["server"] or self.place["cluster"]
        what = (
            f"Fastest {self.collective}, idealised (wires only, no library),"
            if ideal
            else f"What NCCL chooses for {self.collective}"
        )
        title = f"{what} on {where}"
        save(crossover_map(winners, title=title), path)

    def _cells(self, name: str, sizes: Sequence[int]) -> list[Row]:
        """A column of the map; left out where it is too large even if the algorithm was named."""
        from simperf.collectives.effort import MAP, EffortError
        from simperf.errors import InputError, MachineError, UnknownNameError

        try:
            return self._table(name, sizes, {"effort": MAP})
        except (InputError, MachineError, UnknownNameError) as error:
            if self.chosen and not isinstance(error, EffortError):
                raise
            self._leave_out(f"{name} over {len(self.ranks)}" if isinstance(error, EffortError) else name, name, error)
            return []


def _refuse_costs(machine: Wired, given: Mapping[str, str]) -> None:
    """Refuse options that say what a send costs, where the network stack of the machine's hosts does."""
    from simperf.collectives.executors.host_threads import BY_STACK, hosted
    from simperf.errors import InputError, Problem

    message = "the machine's hosts have a network stack, whose costs alone are those of sends"
    wrong = [Problem(message, key=key, value=text, expected=BY_STACK) for key, text in given.items() if text]
    if wrong and hosted(machine):
        raise InputError(wrong)


def _named(
    algo: str,
    collective: str,
    known: Sequence[str],
    machine: Wired,
    ranks: Sequence[str],
) -> tuple[str, ...]:
    """The algorithms that were asked for: the default, all, or those that were named."""
    from simperf.collectives import Wiring
    from simperf.collectives.settings import NCCL, default_algorithm, find_algorithm
    from simperf.errors import InputError, Problem

    default = default_algorithm(machine, ranks, collective)
    if not algo:
        return (default,)
    if algo == "all":
        return tuple(dict.fromkeys([default, *known] if default in NCCL else known))
    names = [find_algorithm(collective, name.strip()) for name in algo.split(",")]
    for name in names:
        if name in NCCL and isinstance(machine, Wiring):
            message = "NCCL runs on the GPUs of a machine, and a wiring has none"
            raise InputError(
                Problem(message, key="--algo", value=name, expected="an idealised algorithm, such as ring")
            )
    return tuple(dict.fromkeys(names))


def _line(problem: object) -> str:
    """A problem in one line."""
    return " ".join(str(problem).replace("\n    expected: ", "; expected: ").split())
