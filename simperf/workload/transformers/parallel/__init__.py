"""One rank's part of a transformer under tensor and sequence parallelism: operations, collectives, memory."""

from simperf.workload.transformers.parallel.rank import RankPasses, rank_passes
from simperf.workload.transformers.parallel.sizes import RankSizes

__all__ = ["RankPasses", "RankSizes", "rank_passes"]
