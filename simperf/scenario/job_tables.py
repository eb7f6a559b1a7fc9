"""``[strategy]``, ``[devices]``, ``[input]``, ``[disturbances]`` and ``[failures]``: typed tables of a training job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from simperf.errors import InputError, Problem, nearest
from simperf.file_problems import problems_of
from simperf.files import TomlFile
from simperf.layout.layout_file import layout_table
from simperf.programs import PROGRAMS, ProgramSpec
from simperf.programs.adapters import adapter
from simperf.programs.failure_options import FAILURES, FAILURES_PARAMETER
from simperf.programs.job_options import JobOptions
from simperf.programs.stack_file import load_stack
from simperf.programs.typed_tables import FieldValue, field_values, written_fields
from simperf.training.failures.options import Failures
from simperf.training.job import Devices, Disturbances, Input, Job
from simperf.training.replica import Layers, Traced
from simperf.training.stack import Stack
from simperf.training.strategies import STRATEGIES
from simperf.workload.layer_kernels import LayerKernels

__all__ = ["FORMAT", "JOB_TABLES", "add_job_tables", "job_place", "job_tables"]

#: of the tables of a job, as ``[strategy]`` may say it
FORMAT = 1

#: tables of a job by the types that they are
JOB_TABLES: Mapping[str, type[Any]] = {"devices": Devices, "input": Input, "disturbances": Disturbances}

#: the table of failures, and the parameter that holds it
_FAILURES = FAILURES_PARAMETER.name

#: the program that plays a job with servers, under its own names
_SERVERS = "parameter-server"
#: keys of ``train`` -> those of ``parameter-server`` that mean the same
_SAME = {"batch_per_gpu": "batch", "gpus": "workers"}
#: keys that mean something else in the two programs, and what to write with ``use = "train"``
_OTHER = {
    "batch": "batch_per_gpu",
    "workers": "gpus",
    "jitter": "[disturbances] jitter and cv",
    "slowdown": "[disturbances] slowdown",
    **dict.fromkeys(("forward", "backward"), f'a model, or use = "{_SERVERS}"'),
}


def add_job_tables(
    beside: Mapping[str, Any], spec: ProgramSpec, table: dict[str, Any], toml: TomlFile, problems: list[Problem]
) -> ProgramSpec:
    """Take the tables of a job into the ``[program]`` table; return the program that simulates its strategy.

    Parameters
    ----------
    beside : mapping of str to object
        The tables ``[strategy]``, ``[devices]``, ``[input]``, ``[disturbances]`` and ``[failures]`` that the file has.
    spec : ProgramSpec
        The program that the file names.
    table : dict
        The program's own keys, which are added to.
    toml : TomlFile
    problems : list of Problem
        What is wrong is added.
    """
    options = spec.options
    if not isinstance(options, JobOptions):
        expected = "a program that simulates a job, such as train or parameter-server"
        problems += [
            toml.problem((key,), f"the program {spec.name!r} has no {key}", expected=expected) for key in beside
        ]
        return spec
    strategy = _strategy(beside, table, options, toml, problems)
    if strategy not in options.strategies and not problems:
        spec, options = _with_servers(spec, table, toml, problems)
    found: list[FieldValue] = []
    if isinstance(beside.get("strategy"), Mapping):
        given = {key: value for key, value in beside["strategy"].items() if key not in ("kind", "format")}
        if (known := beside["strategy"].get("format", FORMAT)) != FORMAT or isinstance(known, bool):
            message, expected = f"this simperf reads format {FORMAT} of jobs", f"format = {FORMAT}, or a newer simperf"
            problems.append(toml.problem(("strategy", "format"), message, value=known, expected=expected))
        found += field_values(STRATEGIES.get(strategy, STRATEGIES["ddp"]), given, toml, ("strategy",), problems)
    for name, kind in JOB_TABLES.items():
        if name in beside:
            found += field_values(kind, beside[name], toml, (name,), problems)
    for one in found:
        _take(one, options, table, strategy, toml, problems)
    _steady(found, spec, table, toml, problems)
    if _FAILURES in table:
        message = "failures have a table of their own"
        problems.append(toml.problem(("program", _FAILURES), message, expected="[failures]"))
    elif _FAILURES in beside:
        table[_FAILURES] = _failures(beside[_FAILURES], toml, problems)
    return spec


def _failures(given: Any, toml: TomlFile, problems: list[Problem]) -> dict[str, Any]:
    """What ``[failures]`` says, in SI units."""
    at: tuple[str, ...] = (_FAILURES,)
    before = len(problems)
    if not isinstance(given, Mapping):
        return {}
    values = {}
    for name, value in given.items():
        if name not in FAILURES.parameters:
            message = f"failures have no option {name!r}{nearest(name, FAILURES.parameters)}"
            problems.append(toml.problem((*at, name), message))
            continue
        try:
            values[name] = adapter(FAILURES.parameters[name]).validate_python(value)
        except ValidationError as error:
            problems += problems_of(error, toml, (*at, name), known=[])
    if not given:
        expected = "node_mtbf, or other keys of failing-job"
        problems.append(toml.problem(at, "nothing fails and nothing is saved", expected=expected))
    if len(problems) == before:
        try:
            FAILURES.made(values)
        except InputError as error:
            problems += [
                toml.problem((*at, one.key), one.message, value=one.value, expected=one.expected)
                for one in error.problems
            ]
    return values


def _strategy(
    beside: Mapping[str, Any], table: dict[str, Any], options: JobOptions, toml: TomlFile, problems: list[Problem]
) -> str:
    """The strategy's name, by ``[strategy] kind`` or the program's key, which the table then has."""
    given = beside.get("strategy")
    named = given.get("kind") if isinstance(given, Mapping) else None
    if named is None:
        return str(table.get("strategy", options.strategies[0]))
    if not isinstance(named, str) or named not in STRATEGIES:
        message = f"no such strategy{nearest(str(named), STRATEGIES)}"
        problems.append(
            toml.problem(("strategy", "kind"), message, value=named, expected="one of " + ", ".join(STRATEGIES))
        )
    elif "strategy" in table:
        message = "[strategy] says it"
        problems.append(toml.problem(("program", "strategy"), message, value=table["strategy"], expected="one of both"))
    elif "strategy" in options.parameters and named in options.strategies:
        table["strategy"] = named
    elif named not in options.strategies and "servers" in options.strategies:
        message = "this program has servers"
        problems.append(toml.problem(("strategy", "kind"), message, value=named, expected='use = "train", or servers'))
    return str(named)


def _with_servers(
    spec: ProgramSpec, table: dict[str, Any], toml: TomlFile, problems: list[Problem]
) -> tuple[ProgramSpec, JobOptions]:
    """The program that simulates servers, with the keys of ``train`` under its names."""
    table.pop("strategy", None)
    for key, instead in _OTHER.items():
        if key in table:
            message = "with servers it means something else"
            problems.append(toml.problem(("program", key), message, value=table[key], expected=instead))
    for key, name in _SAME.items():
        if key in table:
            table[name] = table.pop(key)
    spec = PROGRAMS[_SERVERS]
    assert isinstance(spec.options, JobOptions)
    return spec, spec.options


def _take(
    one: FieldValue,
    options: JobOptions,
    table: dict[str, Any],
    strategy: str,
    toml: TomlFile,
    problems: list[Problem],
) -> None:
    """Take one field into the program's keys."""
    name = options.names.get((one.kind, one.field))
    if name is None:
        message = f"strategy {strategy} has no use for it"
        problems.append(
            toml.problem(one.at, message, value=one.written, expected="the option left out, or another strategy")
        )
    elif name in table:
        message = f"program.{name} says it already"
        problems.append(toml.problem(one.at, message, value=one.written, expected="one of the two"))
    else:
        table[name] = one.written


def _steady(
    found: list[FieldValue], spec: ProgramSpec, table: dict[str, Any], toml: TomlFile, problems: list[Problem]
) -> None:
    """Say for servers what a distribution has by default: their keys know no constant one, and no deviation is none."""
    if spec.name != _SERVERS:
        return
    given = {one.field: one for one in found if one.kind is Disturbances and one.field in ("jitter", "cv")}
    if "jitter" in given and given["jitter"].written != "constant":
        table.setdefault("jitter", Disturbances().cv)
    elif given:
        table.pop("family", None)
        if "cv" in given:
            message = "a constant time has no deviation"
            problems.append(toml.problem(given["cv"].at, message, expected='jitter = "lognormal"'))


def job_place(name: str, data: Mapping[str, Any], spec: ProgramSpec, toml: TomlFile) -> tuple[str | int, ...] | None:
    """The key path at which a table of a job in a file's `data` says the program's parameter `name`, if one does."""
    if not isinstance(spec.options, JobOptions):
        return None
    kinds = dict(JOB_TABLES)
    if isinstance(strategy := data.get("strategy"), Mapping):
        kinds["strategy"] = STRATEGIES.get(str(strategy.get("kind")), STRATEGIES["ddp"])
    for table, kind in kinds.items():
        for one in field_values(kind, data.get(table, {}), toml, (table,), []):
            if spec.options.names.get((one.kind, one.field)) == name:
                return one.at
    return None


def job_tables(job: Job) -> dict[str, dict[str, Any]]:
    """The tables of a scenario that has this job, those that differ from their defaults.

    Parameters
    ----------
    job : Job
        Of a model of the zoo, or of `Layers`; the stack is written by its name.

    Raises
    ------
    InputError
        A model that no table can say.
    """
    kind = next(name for name, one in STRATEGIES.items() if isinstance(job.strategy, one))
    spec = PROGRAMS[_SERVERS if kind == "servers" else "train"]
    assert isinstance(spec.options, JobOptions)
    names, stack = spec.options.names, job.stack
    program: dict[str, Any] = {"use": spec.name, **_model(job, names)}
    usual = Job(job.model)
    for name in ("batch", "batch_per_gpu", "steps", "total"):
        value = getattr(job, name)
        if value == getattr(usual, name) and (name != "batch" or job.batch_per_gpu or kind != "servers"):
            continue
        if (Job, name) not in names:
            message = "servers are given the batch of each GPU"
            raise InputError(Problem(message, key=name, value=str(value), expected="batch_per_gpu"))
        program[names[Job, name]] = value
    if stack.name:
        program["stack"] = stack.name
    loaded = load_stack(stack.name) if stack.name else Stack()
    for part, plain in ((stack.transport, loaded.transport), (stack.serving, loaded.serving)):
        program |= {names[type(part), key]: value for key, value in written_fields(part, plain).items()}
    base = loaded.strategy_with() if loaded.strategy else STRATEGIES[kind]()
    tables = {"strategy": {"format": FORMAT, "kind": kind, **written_fields(job.strategy, base)}}
    for name, one in JOB_TABLES.items():
        tables[name] = written_fields(getattr(job, name), one())
    if job.failures is not None:
        tables[_FAILURES] = _written_failures(job.failures)
    if job.layout is not None and kind == "servers":
        tables["devices"]["gpus"] = job.layout.dp
    elif job.layout is not None:
        tables["layout"] = layout_table(job.layout)
    return {"program": program, **{name: table for name, table in tables.items() if table}}


def _written_failures(failures: Failures) -> dict[str, Any]:
    """``[failures]``: the keys of the parts of failures stand in one table."""
    table: dict[str, Any] = {}
    for name, value in written_fields(failures, Failures()).items():
        table |= value if isinstance(value, dict) else {name: value}
    return table or {"runs": 0}


def _model(job: Job, names: Mapping[tuple[type[Any], str], str]) -> dict[str, Any]:
    """The program's keys of a job's model."""
    model = job.model
    if isinstance(model, Traced) and model.model.kernels is not None and not model.model.traced:
        message, expected = "a file says a model by its dimensions as [model]", "write_transformer"
        raise InputError(Problem(message, key="model", value=model.name, expected=expected))
    if isinstance(model, Traced):
        keys = {"model": model.model.name, "precision": model.precision, "optimizer": model.optimizer}
        if model.model.kernels is not None:
            usual, kernels = LayerKernels(), model.model.kernels
            same = ("attention_library", "memory_format", "batch_norm")
            for one, key in (("attention", "attention_kernels"), *((name, name) for name in same)):
                if getattr(kernels, one) != getattr(usual, one):
                    keys[key] = getattr(kernels, one)
        return {key: value for key, value in keys.items() if value}
    if isinstance(model, Layers) and (Layers, "count") in names:
        plain = Layers(0, -1.0, -1.0, -1.0)
        given = {one: value for one, value in written_fields(model, plain).items() if (Layers, one) in names}
        return {names[Layers, one]: value for one, value in given.items()} | {"states": model.states}
    message = f"a file cannot say a model of {type(model).__name__} here"
    raise InputError(Problem(message, key="model", value=model.name, expected="a model of the zoo"))
