"""One file an algorithm, each with its source and its own name among those that can be asked for."""

import re
from importlib import import_module
from pathlib import Path

import pytest

import simperf.collectives.plans
from simperf.collectives import ALGORITHMS

#: file -> algorithm that it makes; plans that make several collectives of one kind, and helpers, stand beside
FILES = {
    "bidirectional_ring": "all-reduce/bidirectional-ring",
    "binomial_tree": "all-reduce/binomial-tree",
    "double_binary_tree": "all-reduce/double-binary-tree",
    "halving_doubling": "all-reduce/halving-doubling",
    "hierarchical": "all-reduce/hierarchical",
    "multi_ring": "all-reduce/multi-ring",
    "pipelined_tree": "all-reduce/pipelined-tree",
    "recursive_doubling": "all-reduce/recursive-doubling",
    "ring": "all-reduce/ring",
    "server_trees": "all-reduce/server-trees",
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_makes_its_algorithm_and_cites_where_it_is_from(name):
    module = import_module(f"simperf.collectives.plans.{name}")
    assert ALGORITHMS[FILES[name]].__module__ == module.__name__
    assert re.search(r"\b(19|20)\d\d\b|Dive into Deep Learning|NCCL", module.__doc__), (
        "no paper, book or library is named"
    )


def test_every_file_of_plans_is_imported_on_first_use():
    folder = Path(simperf.collectives.plans.__file__).parent
    names = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    makers = {name for name in names if "@collective(" in (folder / f"{name}.py").read_text("utf-8")}
    assert FILES.keys() <= makers
    assert makers >= set(ALGORITHMS.modules.values())
    assert {ALGORITHMS[name].__module__.rpartition(".")[2] for name in ALGORITHMS} >= makers
