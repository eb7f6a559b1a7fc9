"""Layouts: how a job is divided among ranks, meshes, process groups, order on a machine, classes of like ranks."""

from simperf.layout.layout import DIMENSIONS, SHARDINGS, Layout
from simperf.layout.locality import by_server, local_name, server_classes, server_count
from simperf.layout.mesh import Mesh
from simperf.layout.rank_classes import RankClasses, rank_classes

__all__ = [
    "DIMENSIONS",
    "SHARDINGS",
    "Layout",
    "Mesh",
    "RankClasses",
    "by_server",
    "local_name",
    "rank_classes",
    "server_classes",
    "server_count",
]
