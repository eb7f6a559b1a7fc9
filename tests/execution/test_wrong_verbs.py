"""Verbs that are given what has no meaning: they are refused, and never played as something else."""

import math

import pytest

import simperf
from simperf import Kernel, compute, copy, item, launch, new_group, record, recv, run_ranks, send, synchronize
from simperf.errors import SimperfError
from simperf.execution import collective

STRANGE = (None, -1, -1.5, math.nan, "xyz", [], [1], object())


def _shown(value):
    """The same name in every process: an object's own has its address."""
    return "an object" if type(value) is object else repr(value)


KERNEL = Kernel("work", time=1e-3)


def _alone(verb):
    def program(m):
        yield verb(m)

    return program


def _ranks(verb):
    def program(m):
        def rank(number):
            yield verb(m, number)

        yield from run_ranks(m, rank, 2)

    return program


PROGRAMS = {
    "time of a kernel": lambda value: _alone(lambda m: launch(Kernel("work", time=value), m.gpu())),
    "demand": lambda value: _alone(lambda m: launch(Kernel("work", time=1e-3, demand=value), m.gpu())),
    "holds": lambda value: _alone(lambda m: launch(Kernel("work", time=1e-3, holds=value), m.gpu())),
    "launch": lambda value: _alone(lambda m: launch(Kernel("work", time=1e-3, launch=value or -1), m.gpu())),
    "result": lambda value: _alone(lambda m: launch(Kernel("work", time=1e-3, result=value or -1), m.gpu())),
    "kernel": lambda value: _alone(lambda m: launch(value, m.gpu())),
    "place": lambda value: _alone(lambda m: launch(KERNEL, value)),
    "number of a GPU": lambda value: _alone(lambda m: launch(KERNEL, m.gpu(value))),
    "host work": lambda value: _alone(lambda m: compute(value)),
    "bytes of a copy": lambda value: _alone(lambda m: copy(m.gpu(), m.host, nbytes=value)),
    "end of a copy": lambda value: _alone(lambda m: copy(value, m.host, nbytes=1e6)),
    "synchronize": lambda value: _alone(lambda m: synchronize(value)),
    "item": lambda value: _alone(lambda m: item(value)),
    "record": lambda value: _alone(lambda m: record(value)),
    "bytes of a message": lambda value: _ranks(lambda m, rank: recv(value, source=0) if rank else send(value, to=1)),
    "peer": lambda value: _ranks(lambda m, rank: recv(1e6, source=value) if rank else send(1e6, to=value)),
    "bytes of a collective": lambda value: _ranks(lambda m, rank: collective(None, "all-reduce", value)),
    "collective": lambda value: _ranks(lambda m, rank: collective(None, value, 1e6)),
    "group": lambda value: _ranks(lambda m, rank: collective(value or -1, "all-reduce", 1e6)),
    "ranks": lambda value: _ranks(lambda m, rank: collective(new_group(m, value or -1), "all-reduce", 1e6)),
    "options": lambda value: _ranks(
        lambda m, rank: collective(new_group(m, [0, 1], options=value or -1), "all-reduce", 1e6)
    ),
}

#: without a group of rank 1, which is one: rank 0 is not in it
CASES = [(name, value) for name in PROGRAMS for value in STRANGE if (name, value) != ("ranks", [1])]


@pytest.mark.parametrize(("name", "value"), CASES, ids=[f"{name}-{_shown(value)}" for name, value in CASES])
def test_what_has_no_meaning_is_refused(name, value):
    with pytest.raises(SimperfError) as error:
        simperf.simulate(PROGRAMS[name](value), machine="dgx-a100")
    assert error.value.exit_code == 2


@pytest.mark.parametrize("name", ["", -1, 1.5, True, [], object()], ids=_shown)
def test_a_stream_has_a_name_or_a_number(name):
    with pytest.raises(SimperfError, match='is no stream: a name, such as "side"'):
        simperf.simulate(_alone(lambda m: launch(KERNEL, m.gpu(), stream=name)), machine="dgx-a100")


@pytest.mark.parametrize("key", ["machine", "frontend"])
def test_a_machine_and_a_frontend_are_names_or_tables(key):
    with pytest.raises(SimperfError, match=f"{key}: a {key} is expected, not int"):
        simperf.simulate(_alone(lambda m: compute(1e-3)), **{key: 3})
