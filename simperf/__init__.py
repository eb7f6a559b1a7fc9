"""Predicts how long deep-learning work takes on hardware that you do not have.

The public names, each loaded when it is first used::

    import simperf

    result = simperf.run("d2l/sync-160mb")
    print(result.time)
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simperf import calibrate
    from simperf.analysis.breakdown import breakdown
    from simperf.analysis.regime import regime
    from simperf.cost import CostSettings
    from simperf.engine.kernel import Kernel
    from simperf.engine.simulation import Simulation
    from simperf.errors import InputError, SimperfError
    from simperf.execution import (
        batch_isend_irecv,
        compute,
        copy,
        irecv,
        isend,
        item,
        launch,
        record,
        recv,
        send,
        synchronize,
        wait,
        wait_stream,
    )
    from simperf.execution.ranks import new_group, run_ranks
    from simperf.execution.session import Session
    from simperf.frameworks.importer import import_job
    from simperf.hardware import Catalog, Machine, build_machine
    from simperf.layout import Layout
    from simperf.programs import PROGRAMS, program
    from simperf.programs.stack_file import load_stack
    from simperf.results import Result
    from simperf.run import run, run_variants
    from simperf.scenario import Scenario, check_expectations, load_scenario, make_scenario
    from simperf.simulate import simulate
    from simperf.study.axes import LatinHypercube
    from simperf.study.collective import collective
    from simperf.study.compare import compare
    from simperf.study.explain import explain
    from simperf.study.layouts import plan_layouts
    from simperf.study.limits import limits
    from simperf.study.planning import plan
    from simperf.study.sweep import sweep
    from simperf.study.uncertainty import predict
    from simperf.study.what_if import what_if
    from simperf.train import train
    from simperf.training.failures.options import Failures, FailureTimes, Repair, Saving
    from simperf.training.failures.recovery import Recovery
    from simperf.training.job import Devices, Disturbances, Input, Job
    from simperf.training.noise import Noise
    from simperf.training.servers.staleness import Consistency
    from simperf.training.stack import Stack
    from simperf.training.strategies import (
        DDP,
        ByHand,
        Compression,
        DataExchange,
        DataParallel,
        LocalSGD,
        ModelParallel,
        Servers,
        ServerUpdate,
        StageMessages,
    )
    from simperf.units import Bytes, Seconds, format_quantity, parse
    from simperf.version import __version__
    from simperf.workload.transformers import Transformer

#: public name -> module that holds it
_PUBLIC = {
    "ByHand": "training.strategies",
    "Bytes": "units",
    "Catalog": "hardware",
    "Compression": "training.strategies",
    "Consistency": "training.servers.staleness",
    "CostSettings": "cost",
    "DDP": "training.strategies",
    "DataParallel": "training.strategies",
    "Devices": "training.job",
    "Disturbances": "training.job",
    "FailureTimes": "training.failures.options",
    "Failures": "training.failures.options",
    "Input": "training.job",
    "InputError": "errors",
    "Job": "training.job",
    "Kernel": "engine.kernel",
    "LatinHypercube": "study.axes",
    "Layout": "layout",
    "LocalSGD": "training.strategies",
    "Machine": "hardware",
    "ModelParallel": "training.strategies",
    "Noise": "training.noise",
    "PROGRAMS": "programs",
    "Recovery": "training.failures.recovery",
    "Repair": "training.failures.options",
    "Result": "results",
    "Saving": "training.failures.options",
    "Scenario": "scenario",
    "Seconds": "units",
    "ServerUpdate": "training.strategies",
    "Servers": "training.strategies",
    "Session": "execution.session",
    "SimperfError": "errors",
    "Simulation": "engine.simulation",
    "Stack": "training.stack",
    "StageMessages": "training.strategies",
    "Transformer": "workload.transformers",
    "DataExchange": "training.strategies",
    "__version__": "version",
    "batch_isend_irecv": "execution",
    "breakdown": "analysis.breakdown",
    "build_machine": "hardware",
    "calibrate": "calibrate",
    "check_expectations": "scenario",
    "collective": "study.collective",
    "compare": "study.compare",
    "compute": "execution",
    "copy": "execution",
    "explain": "study.explain",
    "format_quantity": "units",
    "import_job": "frameworks.importer",
    "irecv": "execution",
    "isend": "execution",
    "item": "execution",
    "launch": "execution",
    "limits": "study.limits",
    "load_scenario": "scenario",
    "load_stack": "programs.stack_file",
    "make_scenario": "scenario",
    "new_group": "execution.ranks",
    "parse": "units",
    "plan": "study.planning",
    "plan_layouts": "study.layouts",
    "predict": "study.uncertainty",
    "program": "programs",
    "record": "execution",
    "recv": "execution",
    "regime": "analysis.regime",
    "run": "run",
    "run_ranks": "execution.ranks",
    "run_variants": "run",
    "send": "execution",
    "simulate": "simulate",
    "sweep": "study.sweep",
    "synchronize": "execution",
    "train": "train",
    "wait": "execution",
    "wait_stream": "execution",
    "what_if": "study.what_if",
}

#: the public name that is a package
_PACKAGE = "calibrate"

__all__ = [
    "DDP",
    "PROGRAMS",
    "ByHand",
    "Bytes",
    "Catalog",
    "Compression",
    "Consistency",
    "CostSettings",
    "DataExchange",
    "DataParallel",
    "Devices",
    "Disturbances",
    "FailureTimes",
    "Failures",
    "Input",
    "InputError",
    "Job",
    "Kernel",
    "LatinHypercube",
    "Layout",
    "LocalSGD",
    "Machine",
    "ModelParallel",
    "Noise",
    "Recovery",
    "Repair",
    "Result",
    "Saving",
    "Scenario",
    "Seconds",
    "ServerUpdate",
    "Servers",
    "Session",
    "SimperfError",
    "Simulation",
    "Stack",
    "StageMessages",
    "Transformer",
    "__version__",
    "batch_isend_irecv",
    "breakdown",
    "build_machine",
    "calibrate",
    "check_expectations",
    "collective",
    "compare",
    "compute",
    "copy",
    "explain",
    "format_quantity",
    "import_job",
    "irecv",
    "isend",
    "item",
    "launch",
    "limits",
    "load_scenario",
    "load_stack",
    "make_scenario",
    "new_group",
    "parse",
    "plan",
    "plan_layouts",
    "predict",
    "program",
    "record",
    "recv",
    "regime",
    "run",
    "run_ranks",
    "run_variants",
    "send",
    "simulate",
    "sweep",
    "synchronize",
    "train",
    "wait",
    "wait_stream",
    "what_if",
]


def __getattr__(name: str) -> Any:
    """Load a public name on its first use."""
    if name not in _PUBLIC:
        from simperf.errors import nearest

        raise AttributeError(f"module 'simperf' has no name {name!r}{nearest(name, _PUBLIC)}")
    module = import_module(f"simperf.{_PUBLIC[name]}")
    found = module if name == _PACKAGE else getattr(module, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)


class _Package(ModuleType):
    """Keeps ``simperf.run`` the function: importing the module of the same name would replace it."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _PUBLIC and name != _PACKAGE and isinstance(value, ModuleType):
            value = getattr(value, name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
