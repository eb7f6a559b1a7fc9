"""What is refused of a trace, and what of its head is read."""

import json

import pytest

from simperf.errors import InputError
from simperf.workload.recorded.trace_file import read_trace_file
from tests.workload.recorded.made import Trace


def test_a_rank_that_its_job_does_not_have_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"distributedInfo.rank: no rank of a job of 4 .*8"):
        read_trace_file(with_a_step(tmp_path, rank=8, world=4))


def test_a_rank_of_a_job_without_a_size_is_not_known(tmp_path):
    path = with_a_step(tmp_path, rank=3, world=4)
    data = json.loads(path.read_text("utf-8"))
    del data["distributedInfo"]["world_size"]
    path.write_text(json.dumps(data), "utf-8")
    assert (read_trace_file(path).rank, read_trace_file(path).world) == (0, 1)


def test_a_time_far_from_the_first_event_is_refused_by_its_key(tmp_path):
    trace = Trace()
    trace.launch("kernel", 0.0, 5.0, 2.0)
    trace.event("kernel", "late", 1e300, 1.0, stream=7)
    with pytest.raises(InputError, match=r"\.ts: "):
        read_trace_file(trace.save(tmp_path / "late.json"))


def with_a_step(folder, **given):
    trace = Trace(**given)
    trace.launch("kernel", 0.0, 5.0, 2.0)
    trace.step(1, 0.0, 10.0)
    return trace.save(folder / "trace.json")
