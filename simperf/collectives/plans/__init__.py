"""The built-in algorithms, one a file; `simperf.collectives.ALGORITHMS` imports each when it is asked for."""
