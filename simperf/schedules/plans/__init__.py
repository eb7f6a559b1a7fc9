"""The built-in schedules, one a file; `simperf.schedules.SCHEDULES` imports every file here."""
