"""Published passes on one GPU are played from an idle device, forward and backward apart."""

import pytest

from simperf.accuracy.questions import ONE_GPU
from simperf.accuracy.timed_passes import pass_scenario, passes_left_out, passes_table, timed_runs
from simperf.errors import InputError
from simperf.run import run
from simperf.scenario import make_scenario


def case(*rows, gpu="A100-PCIE-40GB"):
    return {
        "id": "mine",
        "hardware": {"gpu": gpu},
        "measured": {"columns": ["run", "e2e_ms", "forward_ms", "backward_ms"], "table": list(rows)},
        "source": {"repo": "somebody/something", "path": "a.json", "commit": "abc"},
    }


def test_a_row_is_played_by_its_passes():
    (row,) = passes_table([case(["bert_large-train-512-2", 300.0, 100.0, 200.0])])
    (one,) = timed_runs(case(["bert_large-train-512-2", 300.0, 100.0, 200.0]))
    assert (row.low, row.unit, row.question, row.kind) == (pytest.approx(0.3), "s", ONE_GPU, "predicted")
    times = [run(pass_scenario(one, part), record=False).time for part in ("forward", "backward")]
    assert row.predicted == pytest.approx(sum(times))
    assert 1.5 < times[1] / times[0] < 2.5  # gradients of inputs and of weights


def test_inference_is_the_forward_pass_alone():
    (one,) = timed_runs(case(["gpt3_27-inf-2048-2", 300.0, 300.0, 0]))
    assert (one.model, one.parts, one.sequence, one.batch) == ("gpt3_27", ("forward",), 2048, 2)
    assert not one.why_not


@pytest.mark.parametrize(
    ("name", "gpu", "reason"),
    [
        ("switch4-inf-512-1", "L4", "Switch Transformers are not modelled"),
        ("bert_large-inf-512-1", "TPU", "the catalogue has no TPU"),
        ("llama-inf-512-1", "L4", "llama is not known"),
    ],
)
def test_what_cannot_be_played_says_why(name, gpu, reason):
    assert passes_left_out([case([name, 1.0, 1.0, 0], gpu=gpu)]) == {reason: 1}
    assert passes_table([case([name, 1.0, 1.0, 0], gpu=gpu)]) == []


def test_another_table_has_no_passes():
    assert list(timed_runs({"id": "x", "measured": {"columns": ["a"], "table": [[1]]}})) == []


def test_attention_an_operation_at_a_time_moves_its_scores():
    (one,) = timed_runs(case(["opt_13-inf-2048-2", 1.0, 1.0, 0]))
    tables = pass_scenario(one, "forward").data
    fused = make_scenario({**tables, "program": {**tables["program"], "attention": "flash"}})
    apart, whole = (run(each, record=False).time for each in (make_scenario(dict(tables)), fused))
    # scores of 2 x 32 x 2048 x 2048 in fp32 are written and read, in each of 24 layers
    assert apart - whole > 24 * 2 * (2 * 32 * 2048**2 * 4) / 1.555e12


def test_a_traced_model_brings_its_own_attention():
    with pytest.raises(InputError, match="brings its own kernels"):
        run(
            make_scenario(
                {
                    "machine": {"use": "p3-2xlarge"},
                    "program": {"use": "training-step", "model": "lenet", "attention": "unfused"},
                }
            )
        )
