"""Times of collectives over sizes, algorithms and numbers of ranks, as `simperf collective` shows them."""

from simperf.study.collective.table import CollectiveTable
from simperf.study.collective.timing import collective

__all__ = ["CollectiveTable", "collective"]
