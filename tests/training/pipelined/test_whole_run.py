"""The whole run of a divided job, and what failures of its machines leave of it."""

import pytest

import simperf
from simperf import Failures, FailureTimes, Job, Layout, ModelParallel, Recovery, Saving, Session, Transformer
from simperf.engine.simulation import Simulation
from simperf.errors import InputError
from simperf.scenario import make_scenario
from simperf.training.driver import train
from simperf.training.failures.checkpoint import young
from simperf.training.replica import Dimensions, Layers
from simperf.workload.tuning import Adapters

SMALL = Transformer(layers=2, hidden=512, heads=8, kv_heads=8, vocabulary=1024, sequence=256)


def played(failures=None, **options):
    model = Dimensions(SMALL, precision="bf16-master")
    job = Job(model, ModelParallel(), layout=Layout(tp=2, dp=2), batch=8, steps=2, failures=failures, **options)
    m = Session(Simulation(simperf.Catalog.load().machine("dgx-a100")))
    m.play(train(m, job))
    return m


def test_steps_that_are_not_played_take_as_long_as_the_others():
    m = played(total=1000)
    assert m.metrics["run time"][0] == pytest.approx(m.now + 998 * m.metrics["time per step"][0])


def test_checkpoints_hold_weights_and_states_once():
    failures = Failures(FailureTimes(node_mtbf=3600.0), saving=Saving(storage=1e9), recovery=Recovery(restart=60.0))
    m = played(failures, total=10_000_000)
    size = 14 * SMALL.parameters  # bf16 weights, fp32 weights and two moments
    assert m.metrics["checkpoint size"][0] == size
    assert m.metrics["checkpoint pause"][0] == pytest.approx(size / 1e9)
    assert m.metrics["checkpoint interval"][0] == pytest.approx(young(size / 1e9, 3600.0))
    parts = [value for name, (value, _) in m.metrics.items() if name.endswith(" time") and name not in _OTHER]
    assert sum(parts) == pytest.approx(m.metrics["run time among failures"][0])
    assert m.metrics["useful time"][0] == pytest.approx(m.metrics["run time"][0])


_OTHER = ("run time",)


def test_a_size_that_is_given_is_taken():
    failures = Failures(FailureTimes(node_mtbf=3600.0), saving=Saving(storage=1e9, size=5e9))
    m = played(failures, total=10_000_000)
    assert m.metrics["checkpoint pause"][0] == pytest.approx(5.0)
    assert "checkpoint size" not in m.metrics


def test_where_nothing_says_what_is_saved_it_is_refused():
    failures = Failures(FailureTimes(node_mtbf=3600.0), saving=Saving(storage=1e9, interval=100.0))
    with pytest.raises(InputError, match=r"failures\.storage: a state of no size"):
        Job(Layers(2, 1.0, 1.0, nbytes=1e6), failures=failures, total=100)
    model = Dimensions(SMALL, precision="bf16-master", adapters=Adapters(rank=4))
    job = Job(model, ModelParallel(), layout=Layout(dp=2), batch=8, failures=failures, total=100)
    m = Session(Simulation(simperf.Catalog.load().machine("dgx-a100")))
    with pytest.raises(InputError, match=r"failures\.size: how much of frozen weights"):
        m.play(train(m, job))


def test_parts_of_gradients_of_a_thousand_micro_batches_are_waited_for():
    """Zero-2 reduces each bucket after each micro-batch, and all of them are waited for at the end."""
    times = {}
    for batch in (1200, 2400):
        tables = {
            "machine": {"use": "dgx-a100"},
            "frontend": {"use": "pytorch"},
            "model": {"layers": 4, "hidden": 256, "heads": 8, "kv_heads": 4, "vocabulary": 1024, "sequence": 256},
            "layout": {"pp": 2, "dp": 4, "sharding": "zero-2"},
            "program": {
                **{"use": "train", "strategy": "model-parallel", "stack": "megatron-core", "steps": 1},
                **{"precision": "bf16-master", "batch": batch, "microbatch": 2, "gradient_bucket": "100 kB"},
            },
        }
        times[batch] = simperf.run(make_scenario(tables), record=False).time
    assert 1.9 < times[2400] / times[1200] < 2.1
