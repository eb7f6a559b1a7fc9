"""Collectives: pure plans (`plans`, one algorithm a file), executors that simulate them, NCCL's choice among them."""

from simperf.collectives.algorithms import ALGORITHMS, algorithms, collective, make_plan, options_of
from simperf.collectives.execute import Execution, collective_event, execute
from simperf.collectives.placement import Transport, Wired
from simperf.collectives.plan import COLLECTIVES, Channel, Phase, Plan, Round, bus_factor

__all__ = [
    "ALGORITHMS",
    "COLLECTIVES",
    "Channel",
    "Execution",
    "Phase",
    "Plan",
    "Round",
    "Transport",
    "Wired",
    "algorithms",
    "bus_factor",
    "collective",
    "collective_event",
    "execute",
    "make_plan",
    "options_of",
]
