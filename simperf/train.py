"""A training job from Python: the scenario that a file would give, and its run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, get_args

from simperf.errors import InputError, Problem
from simperf.layout import Layout
from simperf.layout.layout_file import layout_table
from simperf.programs import PROGRAMS, ProgramSpec
from simperf.programs.job_options import JobOptions
from simperf.programs.stack_file import load_stack, stacks
from simperf.programs.typed_tables import written_value
from simperf.results import Result
from simperf.run import run
from simperf.scenario import Scenario, make_scenario
from simperf.scenario.load import change_scenario
from simperf.scenario.overrides import Changes
from simperf.training.job import Job
from simperf.training.stack import Stack
from simperf.training.strategies import DDP, TRAINED, Servers, Strategy
from simperf.workload.transformers import Transformer, from_config
from simperf.workload.transformers.transformer_file import transformer_table

__all__ = ["train", "training_scenario"]

_STRATEGY = "a strategy: DDP(...), LocalSGD(...), DataParallel(), ByHand(), ModelParallel(...) or Servers(...)"
#: what the keys of the scenario are called here
_ARGUMENTS = {"machine": "on", "machine.use": "on", "model.name": "model", "program.precision": "precision"}


def train(
    model: str | os.PathLike[str] | Transformer | Mapping[str, Any],
    *,
    on: str | Mapping[str, Any],
    layout: Layout | Mapping[str, Any] | None = None,
    strategy: Strategy | None = None,
    stack: Stack | str | None = None,
    precision: str = "",
    batch: int = 0,
    batch_per_gpu: int = 0,
    set: Changes = (),
    record: bool = True,
) -> Result:
    """Train a model on a machine for some steps: the result of the scenario that says the same.

    Parameters
    ----------
    model : str, path, Transformer or mapping
        A model of the zoo, a traced model's file, a transformer by its dimensions, or the content of a Hugging Face
        ``config.json``.
    on : str or mapping
        A server or cluster of the catalogue, or a ``[machine]`` table.
    layout : Layout or mapping, optional
        How the model and its batch are divided; ``Layout(dp=8)`` is data parallelism over eight GPUs. Tensor and
        pipeline parallelism, and sharded states of the optimizer, are of strategy `ModelParallel`. By default data
        parallelism over all GPUs of the machine.
    strategy : Strategy, optional
        `DDP`, `LocalSGD`, `DataParallel`, `ByHand`, `ModelParallel` or `Servers`; `DDP` by default. Quantities are
        in SI units, or texts such as ``"10 MB"``.
    stack : str or Stack, optional
        What a library brings, such as ``"pytorch-ddp"``: options that the strategy leaves at their defaults.
    precision : str
        Such as ``"fp32"`` or ``"fp16"``; the program's by default.
    batch : int
        Samples of a step on all GPUs together, with `Servers` on all workers, which share it evenly; the program's by
        default.
    batch_per_gpu : int
        Samples of a step on each GPU instead.
    set : mapping or sequence of str
        All else, as in `simperf.run`: ``{"program.steps": 10, "frontend.use": "pytorch"}``.
    record : bool
        Keep the timeline.

    Returns
    -------
    Result
        Its `scenario` holds all inputs: ``simperf.make_scenario(result.scenario)`` is the scenario, for other studies.

    Raises
    ------
    InputError
        All that has no meaning, or no effect; a layout that cannot be simulated yet.
    SimperfError
        As `simperf.run`.

    Examples
    --------
    >>> result = train("resnet18", on="dgx-1v", strategy=DDP(bucket=10e6), precision="fp16", batch=256)
    >>> result.headline[0]
    'samples per second'
    """
    scenario = training_scenario(
        model,
        on=on,
        layout=layout,
        strategy=strategy,
        stack=stack,
        precision=precision,
        batch=batch,
        batch_per_gpu=batch_per_gpu,
        set=set,
    )
    return run(scenario, record=record)


def training_scenario(
    model: str | os.PathLike[str] | Transformer | Mapping[str, Any],
    *,
    on: str | Mapping[str, Any],
    layout: Layout | Mapping[str, Any] | None = None,
    strategy: Strategy | None = None,
    stack: Stack | str | None = None,
    precision: str = "",
    batch: int = 0,
    batch_per_gpu: int = 0,
    set: Changes = (),
) -> Scenario:
    """Make the scenario that `train` simulates; the parameters are the same.

    Raises
    ------
    InputError
        All that is wrong with them.
    """
    chosen = DDP() if strategy is None else strategy
    if not isinstance(chosen, (*get_args(Strategy),)):
        message = f"a strategy is expected, not {type(chosen).__name__}"
        raise InputError(Problem(message, key="strategy", value=repr(chosen), expected=_STRATEGY))
    spec = PROGRAMS["parameter-server" if isinstance(chosen, Servers) else "train"]
    program: dict[str, Any] = {"use": spec.name}
    if not isinstance(chosen, Servers):
        program["strategy"] = next(name for name, kind in TRAINED.items() if isinstance(chosen, kind))
    program |= dict(_options(spec, chosen)) | _of_stack(spec, stack)
    program |= {} if precision in (None, "") else {"precision": precision}
    program |= _of_batch(chosen, batch, batch_per_gpu)
    data = {
        "scenario": {"title": f"{_name(model)} on {_name(on)}", "answer": {"metric": "samples per second"}},
        "machine": _of_machine(on),
        "model": _of_model(model),
        "program": program,
    }
    if layout is not None:
        data["layout"] = layout_table(layout) if isinstance(layout, Layout) else _table("layout", layout)
    if not stack:
        data["frontend"] = {"use": "pytorch"}
    elif isinstance(stack, Stack) and stack.frontend:
        data["frontend"] = {"use": stack.frontend}
    try:
        made = change_scenario(make_scenario(data), set)
        if isinstance(chosen, Servers) and _given(batch):
            program["batch"] = _of_each_worker(batch, made)
            made = change_scenario(make_scenario(data), set)
        return made
    except InputError as error:
        told = [one if one.file else replace(one, key=_argument(one.key)) for one in error.problems]
        raise InputError(told) from None


def _options(spec: ProgramSpec, value: Any, base: Any = None) -> Iterator[tuple[str, Any]]:
    """Parameters of a program that a type of a job sets: fields that differ from those of `base`, or its defaults."""
    assert isinstance(spec.options, JobOptions)
    plain = type(value)() if base is None else base
    for one in fields(value):
        found = getattr(value, one.name)
        if is_dataclass(found):
            yield from _options(spec, found)
        elif found != getattr(plain, one.name):
            name = spec.options.names.get((type(value), one.name))
            if name is None:
                message = f"the program {spec.name!r} does not take {type(value).__name__}({one.name}=...)"
                raise InputError(Problem(message, key=one.name, value=repr(found), expected="its default"))
            yield name, written_value(type(value), one.name, found)


def _of_stack(spec: ProgramSpec, stack: Stack | str | None) -> dict[str, Any]:
    """Parameters that a stack sets: its name, and what of it is not as in the file of that name."""
    if stack is None:
        return {}
    if isinstance(stack, str):
        return {"stack": stack}
    if not isinstance(stack, Stack):
        message = f"a stack is expected, not {type(stack).__name__}"
        raise InputError(Problem(message, key="stack", value=repr(stack), expected="its name, its file, or a Stack"))
    if stack.name and stack.name not in stacks():
        message, expected = "a stack of a file of one's own is given by its path", f'stack="FOLDER/{stack.name}.toml"'
        raise InputError(Problem(message, key="stack", value=stack.name, expected=expected))
    base = load_stack(stack.name) if stack.name else Stack()
    return {
        **({"stack": stack.name} if stack.name else {}),
        **dict(_options(spec, stack.transport, base.transport)),
        **dict(_options(spec, stack.serving, base.serving)),
        **dict(_options(spec, stack.kernels, base.kernels)),
        **{
            name: getattr(stack, name)
            for name in ("optimizer", "allocator")
            if getattr(stack, name) != getattr(base, name)
        },
    }


def _given(value: Any) -> bool:
    """Whether a number of samples is given."""
    return value is not None and (value != 0 or isinstance(value, bool))


def _of_batch(strategy: Strategy, batch: int, batch_per_gpu: int) -> dict[str, int]:
    """The parameter that says how many samples a step has; with servers, how many each worker has."""
    if not isinstance(strategy, Servers):
        return {key: value for key, value in (("batch", batch), ("batch_per_gpu", batch_per_gpu)) if _given(value)}
    if _given(batch) and _given(batch_per_gpu):
        message, expected = "batch_per_gpu stands for it", "batch or batch_per_gpu"
        raise InputError(Problem(message, key="batch", value=str(batch), expected=expected))
    return {"batch": batch_per_gpu} if _given(batch_per_gpu) else {}


def _of_each_worker(batch: Any, scenario: Scenario) -> int:
    """Samples of a worker of servers, where all of them together have `batch`."""
    assert scenario.program.options is not None
    if isinstance(batch, bool) or not isinstance(batch, int) or batch < 1:
        message, expected = "a whole number, 1 or more, is expected", "samples of a step on all workers together"
        raise InputError(Problem(message, key="batch", value=repr(batch), expected=expected))
    if "batch" in scenario.data["program"]:
        message = "program.batch says how many samples each worker has"
        raise InputError(Problem(message, key="batch", value=str(batch), expected="one of the two"))
    if scenario.machine is None:
        raise InputError(Problem("no machine is given", key="on", expected='a name, such as "dgx-1v"'))
    job: Job = scenario.program.options.made(scenario.parameters)
    assert isinstance(job.strategy, Servers)
    workers = len(job.strategy.workers(scenario.machine, job.gpus))
    if batch % workers:
        message = f"{workers} workers share it evenly"
        nearest = max(workers, round(batch / workers) * workers)
        raise InputError(
            Problem(message, key="batch", value=str(batch), expected=f"a multiple of {workers}: {nearest}")
        )
    return batch // workers


def _of_machine(on: Any) -> dict[str, Any]:
    if isinstance(on, str):
        return {"use": on}
    if isinstance(on, Mapping):
        return dict(on)
    message = f"a machine is expected, not {type(on).__name__}"
    expected = 'a name, such as "dgx-1v", or a [machine] table'
    raise InputError(Problem(message, key="on", value=repr(on), expected=expected))


def _of_model(model: Any) -> dict[str, Any]:
    if isinstance(model, Transformer):
        return transformer_table(model)
    if isinstance(model, Mapping):
        return transformer_table(from_config(model)) if "model_type" in model else dict(model)
    if isinstance(model, str | os.PathLike):
        return {"name": os.fspath(model)}
    message = f"a model is expected, not {type(model).__name__}"
    expected = 'a name, such as "resnet50", a file, a Transformer, or the content of a config.json'
    raise InputError(Problem(message, key="model", value=repr(model), expected=expected))


def _table(key: str, value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    message = f"a {key} is expected, not {type(value).__name__}"
    raise InputError(Problem(message, key=key, value=repr(value), expected="Layout(dp=8), or its table"))


def _name(value: Any) -> str:
    """What a title calls a model or a machine."""
    if isinstance(value, str | os.PathLike):
        return os.path.basename(os.fspath(value))
    own = value.get("name", value.get("model_type", "")) if isinstance(value, Mapping) else getattr(value, "name", "")
    return str(own) or "own"


def _argument(key: str) -> str:
    """What a key of the scenario is called here."""
    return _ARGUMENTS.get(key, key.removeprefix("program."))
