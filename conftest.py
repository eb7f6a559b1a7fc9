"""What pytest leaves out: the zoo's modules of torch, where there is no torch."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("torch") else ["simperf/workload/zoo_source/*.py"]
