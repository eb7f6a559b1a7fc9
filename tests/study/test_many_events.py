"""Layouts of more events than a run simulates unasked: a search simulates them where they may be clearly faster."""

import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from simperf.errors import InputError
from simperf.study.executors import Serial
from simperf.study.layouts import plan_layouts
from simperf.study.layouts.search import _Order
from simperf.study.layouts.weighing import weigh
from simperf.training.pipelined.excess import refused_events
from tests.study.test_layouts import asked


@pytest.fixture
def small_limits(monkeypatch):
    """A run is refused beyond 3,000 events, and those of a search that have more may have a million."""
    monkeypatch.setattr(sys.modules["simperf.run"], "MOST_EVENTS", 3_000)
    monkeypatch.setattr("simperf.study.layouts.search.MOST_SEARCHED", 1_000_000)
    monkeypatch.setattr("simperf.study.layouts.weighing.MOST_SEARCHED", 1_000_000)


_MANY = {"tp": 4, "pp": 2, "cp": 1, "sharding": "zero-1", "recompute": ["none", "full"], "schedule": "1f1b"}


def test_a_run_of_many_events_is_made_where_it_may_be_clearly_faster(small_limits, tmp_path):
    """What is found is what a search without limits finds; its runs do not depend on the number of workers."""
    request = asked(batch=512, **_MANY, microbatch=1)
    counted = []
    found = plan_layouts(request, cache=False, progress=counted.append)
    assert counted[-1].done == counted[-1].total == 2, "one that is simulated after all counts once"
    whole = plan_layouts(replace(request, force=True), cache=False)
    assert found.winner.choice == whole.winner.choice
    assert found.winner.step == whole.winner.step
    assert not found.failed
    assert all(found.scenario(one.number).force for one in found.ranked), "they are simulated again as they were"
    assert found.detailed() == whole.detailed() == {}
    found.report(tmp_path / "page.html")
    assert "Winner" not in (tmp_path / "page.html").read_text()
    with ThreadPoolExecutor(2) as pool:  # threads have the limits of the test
        two = plan_layouts(request, engine=pool, cache=False)
    assert [one.step for one in two.ranked] == [one.step for one in found.ranked]


def test_what_is_simulated_does_not_depend_on_rows_of_layouts_ahead(small_limits):
    """A run of many events is made or not by what one worker would know, with `within` too."""
    request = asked(batch=32, **_MANY, microbatch=1)
    machine = weigh(request, request.machines[0])
    one = machine.fitting[0]
    bounds = (9.0, 9.05, 9.5)
    machine.fitting[:] = [replace(one, bound=bound) for bound in bounds]
    order = _Order(replace(machine, fitting=[*machine.fitting]), 0, 1, 0.1)
    order._tight = {0, 1, 2}
    done = [{"error": None, "metrics": {"time per step": [step]}} for step in (10.0, 9.6)]
    refused = {"error": "batch: about 5e+03 events would be simulated, more than 3e+03"}
    order.rows = dict(enumerate([refused, *done]))
    assert order.large() == 0
    assert order.large() is None


def test_a_run_that_ends_at_the_limit_is_made_again():
    assert refused_events("48,144 events are simulated, the clock is at 1 s and the end has not come: ...") == 48144.0
    assert refused_events("no such metric") is None


def test_runs_of_many_events_end_where_all_together_would_have_too_many(small_limits, monkeypatch):
    monkeypatch.setattr("simperf.study.layouts.search.MOST_SEARCHED", 3_500)
    with pytest.raises(InputError, match=r"no layout can be simulated.*--force simulates it"):
        plan_layouts(asked(batch=512, **_MANY, microbatch=1), cache=False)


def test_no_run_of_many_events_begins_where_the_search_ends_sooner(small_limits):
    with pytest.raises(InputError, match="no layout can be simulated"):
        plan_layouts(replace(asked(batch=512, **_MANY, microbatch=1), limit=30.0), cache=False)


def test_a_search_that_was_interrupted_keeps_runs_of_many_events(small_limits, tmp_path):
    request, journal = asked(batch=512, **_MANY, microbatch=1), str(tmp_path / "found.journal")
    first = plan_layouts(request, journal=journal, cache=False)
    seen = []

    class Watching(Serial):
        def submit(self, work, task):
            seen.append(task)
            return super().submit(work, task)

    again = plan_layouts(request, journal=journal, engine=Watching(), cache=False)
    assert not seen
    assert [one.step for one in again.ranked] == [one.step for one in first.ranked]
