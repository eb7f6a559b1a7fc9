"""Parameter servers and key-value stores: one or many, synchronous or not.

"Dive into Deep Learning", sections 12.7.1, 12.7.3 and 12.7.4.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Literal

from simperf.errors import InputError, Problem
from simperf.execution import Program
from simperf.execution.session import Session
from simperf.programs.failure_options import FAILURES_PARAMETER, failures_of
from simperf.programs.job_options import JobOptions, Section, stack_of
from simperf.programs.parameters import Parameter, Unless
from simperf.programs.registry import program
from simperf.programs.rules import slows
from simperf.programs.training import KERNELS, SLOW_LINK, chooses_kernels, slow_links, workload_of
from simperf.training.driver import train as play_job
from simperf.training.job import Devices, Disturbances, Input, Job
from simperf.training.replica import Passes
from simperf.training.servers.multi_machine import AROUND
from simperf.training.servers.staleness import Consistency, Mode
from simperf.training.stack import ServerTransport, Serving
from simperf.training.strategies import Compression, Servers, ServerUpdate
from simperf.units import Ratio

__all__ = ["OPTIONS", "train_with_servers"]

Family = Literal["lognormal", "normal", "gamma", "exponential", "weibull"]

_JOB = Section.of(Job, "steps", "total", defaults={"batch_per_gpu": 32}, batch="batch_per_gpu")
_DEVICES = Section.of(Devices, "alone", workers="gpus")
_MODEL = (
    Parameter("model", str, "", "a model of the zoo; without one, the layers below are trained", "Traced"),
    Parameter("precision", str, "fp32", "of the model", "Traced"),
)
_LAYERS = Section.of(
    Passes, "forward", "backward", "sizes", "update", layers="count", weights="nbytes", sample="nbytes_input"
)
_SERVERS = Section.of(
    Servers, "servers", "where", "nodes", "placement", "reduction", "via_host", "spread", "overlap", "barrier"
)
_CONSISTENCY = (
    Parameter("mode", Mode, "synchronous", "how the workers are kept together", "Consistency"),
    Parameter("bound", int, 0, "bounded staleness: steps that a worker may be ahead of the slowest", "Consistency"),
    Parameter("backup", int, 0, "backup workers: gradients of a step that nobody waits for", "Consistency"),
)
_COMPRESSION = Section.of(
    Compression, "ratio", "dense_below", "beside_dense", compression="codec", codec_on="on", free_codec="free"
)
_UPDATE = Section.of(ServerUpdate, "add", "apply", update_on_workers="on_workers")
_TRANSPORT = Section.of(
    ServerTransport,
    *("window", "duplex", "accepts", "connections", "requests", "priority", "message", "rate", "uneven"),
)
_SERVING = Section.of(
    Serving,
    *("slice_size", "opening", "handle", "handlers", "buffers", "copiers", "grouped", "take", "server_memory"),
)
_INPUT = Section.of(Input, "disk", "stored", "batches")
_JITTER = (
    Parameter("jitter", Ratio, 0.0, "standard deviation of a step's computing time over its mean", "Disturbances"),
    Parameter("family", Family, "lognormal", "its distribution", "Disturbances"),
)
_DISTURBANCES = Section.of(
    Disturbances,
    *("variation", "stragglers", "slowdown"),
)


def _rules(given: Mapping[str, Any]) -> tuple[Unless, ...]:
    """What has an effect only together with something else."""
    on_workers = given["update"] > 0 or given["update_on_workers"]
    sparse = given["compression"] in ("top-k", "random-k")
    compressed = given["compression"] != "none"
    together = given["mode"] in ("synchronous", "backup")
    return (
        Unless(not given["model"], tuple(_LAYERS.keys), "a model of the zoo brings its own layers", "no model"),
        *chooses_kernels(given),
        Unless(bool(given["model"]), ("precision",), "layers in round numbers have none", "a model of the zoo"),
        Unless(bool(given["model"]), ("update_on_workers",), "layers take update on the workers", "a model of the zoo"),
        Unless(not on_workers, ("apply",), "the workers update, the servers only add up", "an update on the servers"),
        Unless(not given["nodes"], ("servers", "where"), "the servers' nodes are named", "no nodes"),
        Unless(sparse or not compressed, ("ratio",), "every element is sent", 'compression = "top-k" or "random-k"'),
        Unless(compressed, ("ratio", "dense_below", "codec_on", "free_codec"), "nothing is encoded", "a compression"),
        Unless(given["placement"] != "sliced", ("slice_size",), "every key is cut anyway", "another placement"),
        Unless(given["window"] > 0, ("duplex",), "there is no window", "window = 1 or more"),
        Unless(given["reduction"] in AROUND, ("grouped",), "no rings add up", "reduction = " + " or ".join(AROUND)),
        Unless(together, ("variation",), "nobody waits for the slowest", 'mode = "synchronous" or "backup"'),
        Unless(not together, ("uneven",), "workers stay in step", 'mode = "asynchronous" or "bounded"'),
        Unless(given["handle"] > 0, ("handlers",), "no thread takes any time", "handle above 0"),
        Unless(given["jitter"] > 0, ("family",), "no time varies", "jitter above 0"),
        Unless(given["stragglers"] > 0, ("slowdown",), "no worker is slow", "stragglers = 1 or more"),
        Unless(bool(given["disk"]), ("stored",), "nothing is read", "a disk"),
        slows(given),
    )


def _events(given: Mapping[str, Any]) -> float:
    """About how many events training is, at least: the passes of each worker, and what it sends of each layer."""
    layers = 1 if given["model"] else max(given["layers"], len(given["sizes"]))
    nbytes = 0.0 if given["model"] else given["weights"]
    slices = nbytes / given["slice_size"] if given["slice_size"] > 0 else 0.0
    return float(4.0 * given["steps"] * max(1, given["workers"]) * max(layers, slices))


def _job(given: Mapping[str, Any]) -> Job:
    problems = [
        Problem(message, key=key, value=f"{given[key]:g}")
        for key, wrong, message in (
            ("batch", given["batch"] < 1, "one sample a GPU or more is expected"),
            ("jitter", given["jitter"] < 0, "0 or more is expected"),
        )
        if wrong
    ]
    jitter = {"jitter": given["family"], "cv": given["jitter"]} if given["jitter"] > 0 else {}
    updates = given["update"] > 0 or given["update_on_workers"]
    parts: dict[str, Callable[[], Any]] = {
        "consistency": lambda: _consistency(given),
        "compression": lambda: _COMPRESSION.made(given),
        "update": lambda: _UPDATE.made({**given, "update_on_workers": updates}),
        "transport": lambda: _TRANSPORT.made(given),
        "serving": lambda: _SERVING.made(given),
        "devices": lambda: _DEVICES.made(given),
        "input": lambda: _INPUT.made(given),
        "failures": lambda: failures_of(given),
        "disturbances": lambda: _DISTURBANCES.made(given, links=slow_links(given), **jitter),
    }
    made = {}
    for name, make in parts.items():
        try:
            made[name] = make()
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    kernels = KERNELS.made(given)
    job: Job = _JOB.made(
        given,
        model=workload_of(given["model"], given["precision"], kernels=kernels, layers=_LAYERS.made(given)),
        strategy=_SERVERS.made(given, **{key: made.pop(key) for key in ("consistency", "compression", "update")}),
        stack=stack_of(given, transport=made.pop("transport"), serving=made.pop("serving"), kernels=kernels),
        **made,
    )
    return job


def _consistency(given: Mapping[str, Any]) -> Consistency:
    mode, bound = given["mode"], given["bound"]
    if bound and mode != "bounded":
        message = f"0 is expected: mode is {mode!r}, a bound is of 'bounded'"
        raise InputError(Problem(message, key="bound", value=f"{bound:g}"))
    return Consistency(mode, bound if mode == "bounded" else math.inf, given["backup"])


#: the parameters of the program, and the job that they make
OPTIONS = JobOptions(
    (
        *(_JOB, _DEVICES, *_MODEL, KERNELS, _LAYERS, _SERVERS, *_CONSISTENCY, _COMPRESSION, _UPDATE),
        *(_TRANSPORT, _SERVING, _INPUT, *_JITTER, _DISTURBANCES, SLOW_LINK, FAILURES_PARAMETER),
    ),
    _rules,
    _job,
    strategies=("servers",),
    fields={
        **{(Consistency, name): name for name in ("mode", "bound", "backup")},
        (Disturbances, "jitter"): "family",
        (Disturbances, "cv"): "jitter",
    },
)


@program("parameter-server", rules=_rules, options=OPTIONS, events=_events)
def train_with_servers(m: Session, job: Job) -> Program:
    """Train with parameter servers, and see where the time goes (sections 12.7.1, 12.7.3 and 12.7.4)."""
    yield play_job(m, job)
