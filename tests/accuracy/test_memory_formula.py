"""Memory by the usual formula: states over the ranks that share them, and activations of a stage, counted by hand."""

import json

import pytest

from simperf.accuracy.large_cases import read_large_cases
from simperf.accuracy.large_table import StoredGrade, large_rows
from simperf.accuracy.memory_formula import formula_memory
from tests.accuracy.test_large_cases import with_

TOKENS, HIDDEN, LAYERS = 2 * 4096, 2048, 8


def case_of(tmp_path, **how):
    """The one case, with another layout."""
    (tmp_path / "new.json").write_text(json.dumps({"family": "new", "cases": [with_(**how)]}), "utf-8")
    ((one,), _) = read_large_cases(tmp_path)
    return one


def test_states_are_divided_by_those_that_share_them(tmp_path):
    one = case_of(tmp_path)  # tp 2, pp 2, dp 4, states over dp, every layer computed again
    share = one.model.parameters / 4
    inputs = 2 * TOKENS * HIDDEN * LAYERS
    assert formula_memory(one) == pytest.approx(share * (2 + 2 + 12 / 4) + inputs)
    assert formula_memory(one, 1) == pytest.approx(share * (2 + 2 + 12 / 4) + inputs / 2)


def test_kept_activations_are_divided_by_tensor_parallel_ranks(tmp_path):
    one = case_of(tmp_path, parallelism={"recompute": "selective", "zero": 3})
    kept = 34 * TOKENS * HIDDEN * LAYERS / 2
    assert formula_memory(one) == pytest.approx(one.model.parameters / 4 * (2 + 2 + 12) / 4 + kept)


def test_without_a_pipeline_the_logits_are_held(tmp_path):
    one = case_of(tmp_path, parallelism={"pp": 1, "dp": 8, "zero": 0})
    logits = 4 * TOKENS * (HIDDEN + one.model.vocabulary) / 2
    assert formula_memory(one) == pytest.approx(one.model.parameters / 2 * 16 + 2 * TOKENS * HIDDEN * LAYERS + logits)


def test_experts_are_divided_by_their_own_ranks(tmp_path):
    dense = case_of(tmp_path)
    shape = {"experts": 8, "topk": 2, "moe_ffn": 5504}
    one = case_of(tmp_path, model=shape, parallelism={"ep": 4})
    extra = formula_memory(one) - formula_memory(dense)
    every = 8 * 3 * HIDDEN * 5504 * LAYERS
    router = 8 * HIDDEN * LAYERS
    first = every / 8 * (2 + 2 + 12 / 4) - 3 * HIDDEN * 5504 * LAYERS / 4 * (2 + 2 + 12 / 4)
    assert extra == pytest.approx(first + router / 4 * (2 + 2 + 12 / 4))


def test_the_formula_stands_beside_stored_rows_of_memory(tmp_path):
    memory = {"metric": "peak_memory", "value": 10.0, "unit": "GiB"}
    one = case_of(tmp_path, measured=memory | {"metric": "iteration_time", "value": 2.5, "unit": "s"})
    stored = StoredGrade("new", one.name, "memory", -1, 2.0**33, -0.2, float("nan"), one.digest, "today")
    (row,), _ = large_rows(tmp_path, stored=[stored])
    assert row.simple == pytest.approx(formula_memory(one))
