"""Studies of many runs: sweeps, comparisons, limits, plans, uncertainty, tables of collectives."""
