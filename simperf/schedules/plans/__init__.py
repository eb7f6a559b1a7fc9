"""The built-in schedules, one a file: `simperf.schedules.SCHEDULES` holds what this package imports."""

from simperf.schedules.plans import dualpipe, gpipe, interleaved, one_f_one_b, v_half, v_min, zb_h1, zb_v

__all__ = ["dualpipe", "gpipe", "interleaved", "one_f_one_b", "v_half", "v_min", "zb_h1", "zb_v"]
