"""90 % intervals of the times of `simperf collective`, from published collectives of other GPUs, or why not."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from simperf.analysis.questions import COLLECTIVES, IDEALISED, size_class
from simperf.collectives.bench import Row

if TYPE_CHECKING:
    from simperf.analysis.left_out import SpreadOfErrors

__all__ = ["CollectiveIntervals"]


@dataclass(frozen=True, slots=True)
class CollectiveIntervals:
    """Intervals that published collectives give for the times of one machine's.

    Parameters
    ----------
    gpus : collection of str
        Kinds of GPUs of the machine: what was published of them is left out, as one of these figures may be the row
        itself.
    ranks : int
        GPUs that take part.
    why_not : str
        Why published collectives say nothing of the machine, in words; empty if they do.
    """

    gpus: Collection[str] = ()
    ranks: int = 2
    why_not: str = ""

    def ends(self, row: Row) -> tuple[float, float] | None:
        """The interval of a row's time [s]; None where there is none."""
        if row.idealised:
            return None
        found, _ = self._spread(size_class(row.nbytes))
        if found is None:
            return None
        low, high = found.factors()
        return low * row.time, high * row.time

    def reason(self, row: Row) -> str:
        """Reason why a row has no interval, in words; empty if it has one."""
        return IDEALISED if row.idealised else self._spread(size_class(row.nbytes))[1]

    def lines(self, rows: Sequence[Row]) -> list[str]:
        """Factors of NCCL's times by class of sizes, or why there are none, as comments."""
        sizes = dict.fromkeys(size_class(row.nbytes) for row in rows if not row.idealised)
        lines, refused = [], dict[str, list[str]]()
        for name in sizes:
            found, why = self._spread(name)
            if found is None:
                refused.setdefault(why, []).append(name)
            else:
                ends = "{:.2f}x to {:.2f}x".format(*found.factors())
                lines.append(f"# 90 % interval, {name}: {ends} the time, by {found.origin}, of other GPUs")
        for why, names in refused.items():
            where = f", {', '.join(names)}" if len(names) < len(sizes) else ""
            lines.append(f"# no 90 % interval{where}: {why}")
        if any(row.idealised for row in rows):
            lines.append(f"# no 90 % interval of idealised algorithms: {IDEALISED}")
        return lines

    def _spread(self, size: str) -> tuple[SpreadOfErrors | None, str]:
        """The spread of the errors of published collectives of a class of sizes on other GPUs, or why there is none."""
        from simperf.analysis.left_out import spread_of_errors

        if self.why_not:
            return None, self.why_not
        found = spread_of_errors(COLLECTIVES, size, without_gpus=frozenset(self.gpus))
        why = "too few collectives of other GPUs are published" if found is None else found.beyond(gpus=self.ranks)
        return (None, why) if why else (found, "")
