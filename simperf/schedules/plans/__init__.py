"""The built-in schedules, one a file. Importing this package registers them."""

from simperf.schedules.plans import gpipe, interleaved, one_f_one_b

__all__ = ["gpipe", "interleaved", "one_f_one_b"]
