"""A GPU's time in parts that add up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simperf.analysis.step_parts import GpuInterval, step_parts

KINDS = st.sampled_from(["kernel", "communication", "copy", "wait"])
TIMES = st.floats(0.0, 10.0, width=16)


@st.composite
def intervals(draw):
    start, length, launched = draw(TIMES), draw(TIMES), draw(TIMES)
    kind = draw(KINDS)
    return GpuInterval(start, start + length, kind, kind, min(launched, start))


@given(st.lists(intervals(), max_size=20), TIMES)
def test_parts_add_up_to_the_time(found, begin):
    assert sum(step_parts(found, begin, begin + 8.0).values()) == pytest.approx(8.0, abs=1e-9)


@given(st.lists(intervals(), max_size=20))
def test_kernels_claim_all_of_their_time(found):
    busy = step_parts([one for one in found if one.kind == "kernel"], 0.0, 20.0).get("kernel", 0.0)
    assert step_parts(found, 0.0, 20.0).get("kernel", 0.0) == pytest.approx(busy)


def test_a_gap_is_the_hosts_if_the_next_activity_was_launched_in_it():
    late, early = GpuInterval(3.0, 4.0, "kernel", "k", 2.5), GpuInterval(3.0, 4.0, "kernel", "k", 0.5)
    before = GpuInterval(0.0, 1.0, "kernel", "k", 0.0)
    assert step_parts([before, late], 0.0, 4.0) == {"k": 2.0, "host": 2.0}
    assert step_parts([before, early], 0.0, 4.0) == {"k": 2.0, "wait": 2.0}
    known = GpuInterval(1.0, 2.0, "wait", "wait", 0.0)
    assert step_parts([before, known, late], 0.0, 4.0) == {"k": 2.0, "wait": 1.0, "host": 1.0}
