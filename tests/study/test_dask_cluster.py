"""An engine of dask that can do no more: every future ends, and whoever waits is told."""

import asyncio
import gc
import time
from concurrent.futures import Future
from multiprocessing import active_children

import pytest

from simperf.errors import EngineError
from simperf.study import sweep as studies

module = pytest.importorskip("simperf.study.dask_cluster", exc_type=ImportError)
distributed = pytest.importorskip("distributed")
VARY = {"program.n": [10, 11, 12]}


@pytest.fixture
def lonely():
    """The address of a scheduler that has no worker."""
    with distributed.LocalCluster(
        n_workers=0, processes=False, dashboard_address=None, protocol="tcp", host="127.0.0.1"
    ) as cluster:
        yield cluster.scheduler_address


class Remote:
    """A future of dask whose result does not come."""

    def __init__(self, status, error):
        self.status, self.error = status, error

    def __await__(self):
        raise self.error
        yield


@pytest.mark.parametrize(
    ("status", "lost", "told"),
    [
        ("error", OSError("by the task"), OSError),
        ("finished", OSError("the connection is closed"), EngineError),
        ("cancelled", distributed.CancelledError("x"), EngineError),
        ("cancelled", asyncio.CancelledError(), EngineError),
    ],
)
def test_a_future_ends_whatever_goes_wrong_while_its_result_is_fetched(status, lost, told):
    cluster, outcome = object.__new__(module.DaskCluster), Future()
    cluster._name = "dask:2"

    async def settle():
        await cluster._settle(Remote(status, lost), outcome)

    asyncio.run(settle())
    assert isinstance(outcome.exception(0), told)


def test_a_scheduler_without_workers_is_not_waited_for_without_an_end(lonely, monkeypatch, tmp_path):
    monkeypatch.setattr(module, "_GRACE", 0.5)
    monkeypatch.setattr(studies, "_LOOK", 0.2)
    table = tmp_path / "t.jsonl"
    with pytest.raises(EngineError, match=f"--engine: its scheduler had no worker for .*dask:{lonely}"):
        studies.sweep("d2l/async", VARY, engine=f"dask:{lonely}", cache=False, output=table)
    assert not table.exists()


def test_workers_that_do_not_start_in_time_are_told_and_ended(monkeypatch):
    before = set(active_children())
    monkeypatch.setattr(module, "_GRACE", 0.01)
    with pytest.raises(EngineError, match=r"its 2 processes did not start within 0\.01 s"):
        module.DaskCluster(2)
    assert not set(active_children()) - before


def test_a_task_that_waits_is_let_go_and_nothing_is_taken_afterwards(lonely):
    cluster = module.DaskCluster(address=lonely)
    waiting = cluster.submit(abs, -3)
    cluster.shutdown(cancel_futures=True)
    assert waiting.cancelled()
    with pytest.raises(RuntimeError, match="shut down"):
        cluster.submit(abs, -3)


def test_what_is_given_up_ends_with_its_processes_though_nobody_closes(monkeypatch):
    def never(*args, **kwargs):
        raise TimeoutError

    engine = module.DaskCluster(2)
    outcome = engine.submit(time.sleep, 600)
    workers = module._workers(engine.cluster)
    assert len(workers) == 2
    with monkeypatch.context() as deaf:
        deaf.setattr(engine.client, "close", never)
        deaf.setattr(engine.cluster, "close", never)
        began = time.monotonic()
        engine.abandon()
    assert time.monotonic() - began < 30
    assert outcome.cancelled()
    assert not any(worker.is_running() for worker in workers)
    with pytest.raises(RuntimeError):
        engine.submit(abs, -3)
    del engine
    gc.collect()
