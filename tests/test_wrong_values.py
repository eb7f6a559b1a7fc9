"""Values of a wrong type, given to functions of `simperf`: each is refused, by the argument and what would be right."""

import math

import pytest

import simperf
from simperf import DDP, Compression, Consistency, CostSettings, LatinHypercube, Layout, Servers, Session, Simulation
from simperf.collectives import execute, make_plan
from simperf.collectives.bench import measure
from simperf.collectives.calls import Call
from simperf.collectives.placement import place
from simperf.errors import InputError, SimperfError
from simperf.hardware import build_topology

#: none of them is a name, a path, a number of ranks, a strategy, ...
STRANGE = (True, -1.5, math.nan, [], {}, [1], object(), b"x")


def _train(**given):
    return simperf.train("resnet18", **{"on": "dgx-1v", "set": {"program.steps": 2}, "record": False, **given})


def _collective(**given):
    return simperf.collective("all-reduce", **{"on": "dgx-a100", "sizes": ["1M"], **given})


CALLS = {
    "run(variant=)": lambda value: simperf.run("d2l/async", variant=value or -1),
    "run(profile=)": lambda value: simperf.run("d2l/async", profile=value),
    "run(watch=)": lambda value: simperf.run("d2l/async", watch=value),
    "run(unused=)": lambda value: simperf.run("d2l/async", unused=value),
    "make_scenario": lambda value: simperf.make_scenario(value or -1),
    "load_stack": simperf.load_stack,
    "predict(samples=)": lambda value: simperf.predict("training/jitter-stragglers", samples=value),
    "Result.load": simperf.Result.load,
    "plot(kind=)": lambda value: simperf.run("d2l/async").plot(kind=value),
    "to_pandas": lambda value: simperf.run("d2l/async").to_pandas(value),
    "sweep": lambda value: simperf.sweep("d2l/async", [value], cache=False),
    "sweep(design=)": lambda value: simperf.sweep("d2l/async", ["program.n=1,2"], design=value, cache=False),
    "LatinHypercube": LatinHypercube,
    "collective": lambda value: simperf.collective(value, on="dgx-a100", sizes=["1M"]),
    "collective(algorithm=)": lambda value: _collective(algorithm=value),
    "collective(network=)": lambda value: _collective(network=value),
    "collective(ranks=)": lambda value: _collective(ranks=value),
    "Layout(order=)": lambda value: Layout(order=value),
    "Consistency(mode=)": Consistency,
    "Consistency(bound=)": lambda value: Consistency("bounded", bound=value),
    "Consistency(backup=)": lambda value: Consistency("backup", backup=value),
    "Servers(consistency=)": lambda value: Servers(consistency=value),
    "Servers(compression=)": lambda value: Servers(compression=value),
    "Servers(update=)": lambda value: Servers(update=value),
    "Servers(via_host=)": lambda value: _train(strategy=Servers(via_host=-1 if value is True else value)),
    "Servers(spread=)": lambda value: _train(strategy=Servers(spread=-1 if value is True else value)),
    "train(batch=)": lambda value: _train(batch=value),
    "train(batch_per_gpu=)": lambda value: _train(batch_per_gpu=value),
    "train(precision=)": lambda value: _train(precision=value),
}


@pytest.mark.parametrize("value", STRANGE, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("name", CALLS)
def test_a_value_of_a_wrong_type_is_refused(name, value):
    with pytest.raises(SimperfError) as error:
        CALLS[name](value)
    assert error.value.exit_code == 2


def test_parts_of_a_strategy_are_named_with_what_would_be_right():
    with pytest.raises(SimperfError, match=r"compression: Compression\(...\) is expected, not str(.|\n)*Comp"):
        Servers(compression="8-bit")
    assert Servers(compression=Compression("8-bit")).compression.codec == "8-bit"


def test_kernels_that_would_never_end_are_refused():
    with pytest.raises(SimperfError, match="slowdown: kernels get slower"):
        _train(strategy=DDP(slowdown=1e30))


STAR = build_topology("star", 2, bandwidth=1e9)

#: calls with keywords that went, and what their errors say instead
REMOVED = {
    "sweep(points=)": (lambda: simperf.sweep("d2l/async", ["program.n=1..9"], points=3), "LatinHypercube(points)"),
    "Session(sharp=)": (lambda: Session(Simulation(), sharp=True), "cost=CostSettings(sharp=...)"),
    "Session(measured=)": (lambda: Session(Simulation(), measured="t4"), "cost=CostSettings(gpu=...)"),
    "execute(servers=)": (
        lambda: execute(make_plan("all-reduce", "ring", nranks=2), STAR, nbytes=1.0, servers=["r0"]),
        "placement=place(",
    ),
    "measure(machine, ...)": (
        lambda: measure(STAR, "all-reduce", "ring", nbytes=1.0, ranks=STAR.gpus),
        "measure(Call(machine, ",
    ),
}


@pytest.mark.parametrize("name", REMOVED)
def test_a_keyword_that_went_is_refused_with_its_successor(name):
    call, successor = REMOVED[name]
    with pytest.raises(InputError) as error:
        call()
    assert successor in str(error.value)


def test_a_keyword_that_never_was_is_refused_as_by_python():
    with pytest.raises(TypeError, match="unexpected keyword argument 'sharpp'; did you mean 'sharp'"):
        Session(Simulation(), sharpp=True)


def test_the_successors_work():
    assert Session(Simulation(), cost=CostSettings(sharp=True)).another().cost.sharp
    row = measure(Call(STAR, "all-reduce", "ring", nbytes=1e6, ranks=STAR.gpus))
    assert execute(make_plan("all-reduce", "ring", nranks=2), STAR, nbytes=1e6).time == row.time


def test_ranks_beside_a_placement_are_refused():
    plan = make_plan("all-reduce", "ring", nranks=2)
    with pytest.raises(InputError, match="ranks: a placement says where the ranks are"):
        execute(plan, STAR, nbytes=1.0, ranks=STAR.gpus, placement=place(plan, STAR))
