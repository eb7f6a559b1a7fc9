"""One rank's part of a transformer under tensor, sequence and expert parallelism: operations, collectives, memory."""

from simperf.workload.routing import Routing
from simperf.workload.transformers.parallel.expert_sizes import ExpertSizes
from simperf.workload.transformers.parallel.precision import RankPrecision
from simperf.workload.transformers.parallel.rank import RankPasses, Spread, rank_passes
from simperf.workload.transformers.parallel.sizes import RankSizes

__all__ = ["ExpertSizes", "RankPasses", "RankPrecision", "RankSizes", "Routing", "Spread", "rank_passes"]
