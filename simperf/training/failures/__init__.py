"""Long jobs on machines that fail: causes, checkpoints, recovery, goodput."""
