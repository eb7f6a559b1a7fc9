"""Divided jobs that would play too many events, or take too long to divide, are refused before anything is made."""

import time

import pytest
import simpy

from simperf import Layout, ModelParallel, Transformer, run, train
from simperf.errors import DeviceMemoryError, InputError
from simperf.memory import ChunkMemory, LayerMemory, stage_memory
from simperf.schedules import make_schedule
from simperf.training.pipelined.excess import PASS, least_events, refuse_numbers

LAYOUT = Layout(tp=2, pp=2, dp=2)


def refused(*, layers=4, batch=8, layout=LAYOUT, steps=1, error=InputError, **options):
    """Message of a refusal, which takes few seconds of processor time."""
    model = Transformer(layers=layers, hidden=1024, heads=16, vocabulary=32000, sequence=1024, tied=True, norm="layer")
    begin = time.process_time()
    with pytest.raises(error) as found:
        train(
            model,
            on="dgx-a100-x4",
            layout=layout,
            strategy=ModelParallel(**options),
            stack="megatron-core",
            precision="bf16-master",
            batch=batch,
            set={"program.steps": steps},
            record=False,
        )
    assert time.process_time() - begin < 10
    return str(found.value)


@pytest.mark.parametrize(
    ("job", "key", "value"),
    [
        ({"batch": 10**7}, "batch", "at most 150000"),
        ({"batch": 10**12}, "batch", "at most 150000"),
        ({"schedule": "interleaved", "chunks": 10**6}, "chunks", "at most"),
        ({"batch": 20000}, "batch", "larger microbatch"),
    ],
    ids=["batch", "huge batch", "chunks", "open layers"],
)
def test_numbers_that_are_too_large_are_named(job, key, value):
    message = refused(**job)
    assert f"{key}: about" in message
    assert "events would be simulated" in message
    assert value in message


def test_events_of_a_pass_are_those_that_a_run_has_more_of(monkeypatch):
    """Twice the micro-batches are twice the passes; layers that are simulated once have no more events."""
    counted, step = [], simpy.Environment.step
    monkeypatch.setattr(simpy.Environment, "step", lambda env: counted.append(None) or step(env))

    def events(batch):
        counted.clear()
        model = Transformer(layers=4, hidden=1024, heads=16, vocabulary=32000, sequence=1024)
        job = {"stack": "megatron-core", "precision": "bf16-master", "batch": batch, "set": {"program.steps": 1}}
        train(model, on="dgx-a100", layout=Layout(pp=2), strategy=ModelParallel(), record=False, **job)
        return len(counted)

    assert (events(32) - events(16)) / (16 * 2 * 2) == pytest.approx(PASS)


def test_what_is_told_would_do():
    job = {"steps": 1, "most": 3e6}
    refuse_numbers(LAYOUT, ModelParallel(microbatch=1), 150_000, 4, **job)
    with pytest.raises(InputError, match="at most 150000"):
        refuse_numbers(LAYOUT, ModelParallel(microbatch=1), 150_002, 4, **job)
    refuse_numbers(LAYOUT, ModelParallel(microbatch=1), 10**9, 4, steps=1, most=None)
    assert least_events(LAYOUT, ModelParallel(microbatch=1), 150_000, 4) <= 3e6


def test_layers_are_named_where_one_micro_batch_is_too_much():
    with pytest.raises(InputError, match=r"model\.layers: about"):
        refuse_numbers(LAYOUT, ModelParallel(microbatch=1), 2, 10**6, steps=1, most=3e6)


def test_memory_of_many_layers_is_refused_soon():
    assert "out of memory" in refused(layers=10**4, error=DeviceMemoryError)


def test_a_schedule_of_many_chunks_is_refused_before_it_is_made():
    with pytest.raises(InputError, match="chunks: 2 stages of 1000000000 chunks"):
        make_schedule("interleaved", stages=2, microbatches=4, chunks=10**9)


@pytest.mark.parametrize("gradient", [0.0, 3.0, 7.0])
def test_memory_of_like_layers_is_that_of_each(gradient):
    def layer(number):
        return LayerMemory("block", 5.0, 2.0, 9.0, gradient=gradient)

    order = [("F", 0, 0), ("F", 1, 0), ("B", 0, 0), ("B", 1, 0)]
    same, each = [layer(0)] * 7, [layer(number) for number in range(7)]
    found = [stage_memory(order, [ChunkMemory(layers, 4.0, 4.0)], {"weights": 10.0}) for layers in (same, each)]
    assert found[0] == found[1]


def test_parts_of_products_that_are_too_many_are_named():
    with pytest.raises(InputError, match=r"product_parts: about .* \(read: 512\)\n.*fewer than (199|[234]\d\d);"):
        run("large/llama3-8b-product-parts", set={"program.product_parts": 512})
