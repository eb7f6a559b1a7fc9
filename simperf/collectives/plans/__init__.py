"""The built-in algorithms, one a file. Importing this package registers them."""

from simperf.collectives.plans import (
    central,
    naive,
    pipelined_tree,
    ring,
    sharded,
)

__all__ = ["central", "naive", "pipelined_tree", "ring", "sharded"]
