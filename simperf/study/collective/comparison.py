"""Algorithms of a collective on one machine: tables by size, scaling, and the fastest over ranks and sizes."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from simperf.collectives import Transport
from simperf.collectives.bench import Row, best_rows
from simperf.collectives.plan_bounds import ASKED, MAP, SURVEY, PlanBounds, PlanBoundsError
from simperf.collectives.settings import NCCL
from simperf.errors import InputError, MachineError, Problem, SimperfError, UnknownNameError
from simperf.study.collective.disturbances import background_traffic, entry_times
from simperf.study.collective.machine import BuiltMachine, MachineChoice
from simperf.study.collective.options import flag, options_taken
from simperf.study.collective.timing import collective, refuse_unused_profile

if TYPE_CHECKING:
    from simperf.analysis.scaling import ScalingCurve

__all__ = ["AlgorithmComparison", "AlgorithmTables", "FastestAlgorithms"]


class AlgorithmTables(NamedTuple):
    """Rows by algorithm and size, and why algorithms were left out."""

    rows: dict[str, list[Row]]
    refusals: tuple[str, ...]


class FastestAlgorithms(NamedTuple):
    """The fastest row of each size by number of ranks, what was compared, and why algorithms were left out."""

    rows: dict[int, list[Row]]
    title: str
    refusals: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlgorithmComparison:
    """A collective on a machine, ready to be timed; `simperf.study.collective.request.CollectiveRequest` makes it.

    Parameters
    ----------
    collective : str
    algorithms : tuple of str
    choice : MachineChoice
    built : BuiltMachine
        What `choice` builds.
    options : mapping
        Options of the algorithms; each gets those that it knows.
    protocol : str
        Protocol variant, empty for none.
    transport : Transport
        Without the protocol's part.
    exact : bool
        Force the step-exact executor.
    force : bool
        Simulate what would be refused as too large.
    named : bool
        The algorithms were named, and not just all of them.
    late, background : tuple of str
        As `simperf.study.collective.disturbances` reads them.
    """

    collective: str
    algorithms: tuple[str, ...]
    choice: MachineChoice
    built: BuiltMachine
    options: Mapping[str, Any]
    protocol: str
    transport: Transport
    exact: bool
    force: bool
    named: bool
    late: tuple[str, ...]
    background: tuple[str, ...]

    def tables(self, sizes: Sequence[int]) -> AlgorithmTables:
        """A table for each algorithm; those that cannot run here are left out, unless they were named.

        Parameters
        ----------
        sizes : sequence of int
            Payloads [B].
        """
        disturbed = {
            "entry_times": entry_times(self.late, self.built.ranks),
            "background": background_traffic(self.background, self.built.machine),
            "bounds": self._bounds(ASKED if self.named else SURVEY.shared(len(sizes))),
        }
        tables: dict[str, list[Row]] = {}
        refusals: list[str] = []
        for name in self.algorithms:
            try:
                tables[name] = self._rows(self.built, name, sizes, disturbed)
            except (InputError, MachineError, UnknownNameError) as error:
                if self.named:
                    raise _with_force(self._by_flags(error)) from None
                refusals.append(_refusal(name, name, error))
        self._refuse_unused(tables)
        return AlgorithmTables(tables, tuple(dict.fromkeys(refusals)))

    def scaling(self, size: int, tables: Mapping[str, Sequence[Row]]) -> list[ScalingCurve]:
        """Scaling of each algorithm of `tables` at one size [B]: on fewer ranks, or fewer servers of a cluster.

        The ideal is the lower bound, the time that no algorithm can beat. What takes too long or does not fit is left
        out.
        """
        if self.late or self.background or self.choice.cluster:
            return []
        from simperf.analysis.scaling import Scaled, ScalingCurve
        from simperf.study.scaling import halvings

        by_server = not self.choice.topology and self.choice.nodes > 1
        points = {
            name: [Scaled(len(self.built.ranks), row.time, row.floor) for row in rows if row.nbytes == size]
            for name, rows in tables.items()
        }
        for count in halvings(self.choice.nodes if by_server else len(self.built.ranks)):
            built = self._resized(None, count) if by_server else self._resized(count, 1)
            for name, line in points.items():
                if len(built.ranks) > 1:
                    with contextlib.suppress(SimperfError):
                        (row,) = self._rows(built, name, [size], {"bounds": MAP})
                        line.append(Scaled(len(built.ranks), row.time, row.floor))
        ideal = "the lower bound, the time that no algorithm can beat"
        lines = [ScalingCurve("ranks", name, "time", ideal, tuple(sorted(line))) for name, line in points.items()]
        return [line for line in lines if len(line.points) > 1]

    def fastest(self, sizes: Sequence[int]) -> FastestAlgorithms:
        """The fastest idealised algorithm over numbers of ranks and sizes [B], or what NCCL chooses if it is named.

        Raises
        ------
        InputError
            An option that a map has no place for.
        """
        ideal = self._mapped()
        wired = bool(self.choice.topology)
        most = len(self.built.ranks) if wired else self.choice.nodes
        counts = sorted({min(2**power, most) for power in range(1 if wired else 0, most.bit_length() + 1)})
        winners: dict[int, list[Row]] = {}
        refusals: list[str] = []
        for count in counts:
            built = self._resized(count, 1) if wired else self._resized(None, count)
            if len(built.ranks) < 2:
                continue
            tables = {}
            for name in ideal or self.algorithms:
                rows = self._column(built, name, sizes, refusals)
                if rows:
                    tables[name] = rows
            if tables:
                best = best_rows(tables)
                winners[len(built.ranks)] = [replace(row, algorithm=row.choice or row.algorithm) for row in best]
        where = f"a {self.choice.topology}" if wired else self.choice.server or self.choice.cluster
        what = f"What NCCL chooses for {self.collective}"
        if ideal:
            what = f"Fastest {self.collective}, idealised (wires only, no library),"
        return FastestAlgorithms(winners, f"{what} on {where}", tuple(dict.fromkeys(refusals)))

    def _mapped(self) -> list[str]:
        """The idealised algorithms of a map; none if it shows what NCCL chooses."""
        if self.late or self.background:
            key = "--late" if self.late else "--background"
            raise InputError(
                Problem("a map is over many numbers of ranks and has no place for this", key=key, expected="no --map")
            )
        ideal = [name for name in self.algorithms if name not in NCCL]
        if self.named and 0 < len(ideal) < len(self.algorithms):
            message = "a map compares idealised algorithms, or shows what NCCL chooses"
            value = ",".join(self.algorithms)
            raise InputError(Problem(message, key="--algo", value=value, expected="either, not both"))
        unread = [flag(key) for key in options_taken(self.collective, "nccl") if ideal and key in self.options]
        if unread:
            message = "a map of idealised algorithms does not read this"
            raise InputError([Problem(message, key=key, expected="--algo nccl") for key in unread])
        return ideal

    def _resized(self, ranks: int | None, nodes: int) -> BuiltMachine:
        """The machine with so many servers if it is made of servers, and so many of its ranks."""
        return replace(self.choice, ranks=ranks, nodes=nodes).build()

    def _column(self, built: BuiltMachine, name: str, sizes: Sequence[int], refusals: list[str]) -> list[Row]:
        """A column of the map; left out where it is too large even if the algorithm was named."""
        try:
            return self._rows(built, name, sizes, {"bounds": self._bounds(MAP)})
        except (InputError, MachineError, UnknownNameError) as error:
            if self.named and not isinstance(error, PlanBoundsError):
                raise
            what = f"{name} over {len(built.ranks)}" if isinstance(error, PlanBoundsError) else name
            refusals.append(_refusal(what, name, error))
            return []

    def _bounds(self, bounds: PlanBounds) -> PlanBounds:
        """The bounds, or none where they are not wanted."""
        return bounds.forced() if self.force else bounds

    def _rows(self, built: BuiltMachine, name: str, sizes: Sequence[int], disturbed: Mapping[str, Any]) -> list[Row]:
        """Rows by size."""
        known = options_taken(self.collective, name)
        options: dict[str, Any] = {key: value for key, value in self.options.items() if key in known}
        if name not in NCCL:
            options["transport"] = self.transport
        if self.choice.profile is not None:
            from simperf.scenario.calibration import measured_collectives

            options["measured"] = measured_collectives((self.choice.profile,))
        table = collective(
            self.collective,
            on=built.machine,
            sizes=sizes,
            algorithm=name,
            ranks=built.ranks,
            protocol=self.protocol,
            exact=self.exact,
            **disturbed,
            **options,
        )
        return list(table)

    def _by_flags(self, error: Exception) -> Exception:
        """An error of the command's options, by the names that they have there."""
        if type(error) is not InputError:
            return error
        named = [replace(one, key=flag(one.key)) if one.key in self.options else one for one in error.problems]
        return InputError(named)

    def _refuse_unused(self, tables: Mapping[str, Sequence[Row]]) -> None:
        """Refuse a profile that changes none of the tables."""
        profile, wrong = self.choice.profile, []
        if profile is None:
            return
        machine, ranks, changed = self.built
        for name, rows in tables.items():
            try:
                refuse_unused_profile(profile, machine, self.collective, name, ranks, rows, changed)
            except InputError as error:
                wrong.append(error)
        if wrong and len(wrong) == len(tables):
            raise wrong[0]


def _with_force(error: Exception) -> Exception:
    """An error of what is too large says which option simulates it all the same."""
    if not isinstance(error, PlanBoundsError):
        return error
    told = "; or --force, which simulates it all the same"
    return PlanBoundsError([replace(one, key="--algo", expected=one.expected + told) for one in error.problems])


def _refusal(what: str, name: str, error: Exception) -> str:
    """Why something is left out, in one line."""
    force = f"; --algo {name} grants it more, and --force all" if isinstance(error, PlanBoundsError) else ""
    said = "; ".join(_line(problem) for problem in getattr(error, "problems", (error,)))
    return f"{what}: {said}{force}"


def _line(problem: object) -> str:
    """A problem in one line."""
    return " ".join(str(problem).replace("\n    expected: ", "; expected: ").split())
