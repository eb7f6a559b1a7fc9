"""Loading a traced model, beside merely parsing its file.

pytest tests/benchmarks/test_zoo.py --benchmark-enable --benchmark-columns=median
"""

import gzip
import json

import pytest

from simperf.workload import zoo
from simperf.workload.modelfile import read_model

NAMES = ("resnet50", "bert-large", "gpt2-xl", "llama2-7b")


def parse(path):
    raw = path.read_bytes()
    return json.loads(gzip.decompress(raw) if path.suffix == ".gz" else raw)


@pytest.mark.parametrize("name", NAMES)
def test_parsing_the_file(benchmark, name):
    """The baseline."""
    assert benchmark(parse, zoo.model_files()[name])


def read_again(name):
    """The model without what is kept of it."""
    return read_model(zoo.model_files()[name])


@pytest.mark.parametrize("name", NAMES)
def test_loading_the_model(benchmark, name):
    assert benchmark(read_again, name).parameter_count > 0
