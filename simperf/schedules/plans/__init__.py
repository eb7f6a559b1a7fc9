"""The built-in schedules, one a file: `simperf.schedules.SCHEDULES` holds what this package imports."""

from simperf.schedules.plans import gpipe, interleaved, one_f_one_b

__all__ = ["gpipe", "interleaved", "one_f_one_b"]
