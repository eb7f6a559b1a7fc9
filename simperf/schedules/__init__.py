"""Pipeline schedules: pure plans of which stage does which pass of which micro-batch, and their conformance check.

The built-in ones are in `plans`, one a file. `simperf.ModelParallel` simulates them.
"""

from simperf.schedules.interpret import count_in_flight, order_of, problems_of
from simperf.schedules.registry import SCHEDULES, make_schedule, options_of, schedule
from simperf.schedules.schedule import PASSES, Pass, Schedule

__all__ = [
    "PASSES",
    "SCHEDULES",
    "Pass",
    "Schedule",
    "count_in_flight",
    "make_schedule",
    "options_of",
    "order_of",
    "problems_of",
    "schedule",
]
