"""The built-in algorithms, one a file. Importing this package registers them."""

from simperf.collectives.plans import (
    bidirectional_ring,
    binomial_tree,
    bruck,
    central,
    direct,
    double_binary_tree,
    halving_doubling,
    hierarchical,
    multi_ring,
    naive,
    pairwise,
    pipelined_tree,
    recursive_doubling,
    ring,
    sharded,
)

__all__ = [
    "bidirectional_ring",
    "binomial_tree",
    "bruck",
    "central",
    "direct",
    "double_binary_tree",
    "halving_doubling",
    "hierarchical",
    "multi_ring",
    "naive",
    "pairwise",
    "pipelined_tree",
    "recursive_doubling",
    "ring",
    "sharded",
]
