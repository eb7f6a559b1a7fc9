"""Scenarios of divided models that once ended in a traceback, or in a message that named no place or no way out."""

import pytest
import tomli_w

from simperf.cli import main

MODEL = {"layers": 4, "hidden": 256, "heads": 8, "vocabulary": 1000, "sequence": 128}
EXPERTS = {**MODEL, "experts": 8, "experts_per_token": 2, "expert_ffn": 128}
PROGRAM = {"use": "train", "strategy": "model-parallel", "precision": "bf16-master", "batch": 8, "steps": 1}


@pytest.fixture
def said(tmp_path, monkeypatch, capsys):
    """Exit code and standard error of a command over a scenario of these tables."""
    monkeypatch.chdir(tmp_path)

    def run(*words, machine="dgx-a100", model=None, layout=None, **program):
        tree = {"machine": {"use": machine}, "model": model or MODEL, "layout": layout or {}}
        (tmp_path / "s.toml").write_text(tomli_w.dumps(tree | {"program": PROGRAM | program}))
        code = main([*(words or ("run",)), "s.toml"])
        err = capsys.readouterr().err
        assert "Traceback" not in err
        assert "defect" not in err
        return code, err

    return run


@pytest.mark.parametrize("layout", [{}, {"tp": 2, "pp": 2, "dp": 2, "sharding": "zero-1"}])
def test_a_norm_of_several_kernels_behind_the_embedding_is_played(said, layout):
    assert said(model={**MODEL, "embed_norm": True}, layout=layout)[0] == 0


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"machine": "p3-8xlarge"}, ("program.precision: ", "has no bf16 arithmetic")),
        ({"attention_library": "flash-attention-2", "machine": "dgx-a100"}, ("program.attention_library: ",)),
        ({"model": {**MODEL, "window": 16}}, ("model.window_layers: ", "expected: 1 to")),
        ({"model": EXPERTS, "expert_load": "zipf"}, ("program.expert_load: no load of experts",)),
        ({"document_tokens": 5}, ("program.document_tokens: ",)),
        ({"wide_last_blocks": 2}, ("program.wide_last_blocks: has no effect",)),
        ({"model": {**MODEL, "dense_layers": 1}}, ("model.dense_layers: ", "expected: ")),
        ({"model": {**MODEL, "norm_bias": False}}, ("model.norm_bias: ", "expected: ")),
        ({"stragglers": 16, "straggler_slowdown": 2.0}, ("program.stragglers: ", "at most 1")),
        ({"expert_shares": [1.0, 2.0]}, ("program.expert_", "has no effect: the model has no experts")),
        ({"expert_load": "power-law-1.2", "expert_draws": 2}, ("program.expert_load: has no effect",)),
        ({"schedule": "dualpipe"}, ("layout.pp: an even number of stages",)),
        (
            {"schedule": "interleaved", "chunks": 2, "layout": {"pp": 2, "dp": 2}, "batch": 6},
            ("program.batch: interleaved stages take a multiple of the 2 stages, and the batch has 3", "4 or 8"),
        ),
        ({"layout": {"ep": 3}, "model": EXPERTS}, ("layout.ep: ",)),
        ({"layout": {"dp": 2, "order": "pp-ep-tp-cp-dp"}, "strategy": "ddp"}, ("layout.order: ", "expected: ")),
    ],
)
def test_what_is_refused_is_told_by_its_place(said, given, told):
    code, err = said(**given)
    assert code == 2
    assert "s.toml:" in err
    assert all(one in err for one in told), err
