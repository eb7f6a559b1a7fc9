"""A training job: what is trained, where, how, on what data, what disturbs it, and what fails."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from simperf.errors import InputError, Problem
from simperf.layout import Layout
from simperf.training.failures.options import Failures
from simperf.training.field_types import refuse_types
from simperf.training.jitter import Constant, Distribution, Family, distribution
from simperf.training.mini_batches import Input
from simperf.training.noise import Noise
from simperf.training.offload import Offload
from simperf.training.replica import Workload
from simperf.training.stack import ServerTransport, Serving, Stack
from simperf.training.stragglers import LinkChange, slowed
from simperf.training.strategies import (
    DDP,
    STRATEGIES,
    DataParallel,
    LocalSGD,
    ModelParallel,
    Servers,
    Strategy,
)
from simperf.units import PerSecond, Ratio, Seconds

__all__ = ["BATCH", "Devices", "Disturbances", "Input", "Job", "SlowLink"]

#: samples of a step where nobody says how many
BATCH = 256


@dataclass(frozen=True, slots=True)
class Devices:
    """The devices that train, and how they share a batch.

    Parameters
    ----------
    gpus : int
        GPUs that take part, 0 for all
    nodes : tuple of str
        the nodes that take part, instead of a number of GPUs; a CPU may be among them
    split : str
        equal shares of the batch, or the shares with which all devices finish together
    speeds : tuple of float
        how many times as fast each device is, in order; those not named are as fast as they are [1]
    exact : str
        simulate every rank, or never, or where ranks differ
    alone : float
        samples a second of one device by itself, its whole step, as measured [1/s]; scales the kernels
    alone_accumulate : int
        micro-batches of a step when that was measured, 0 for those of this run: where a batch is fixed, one device has
        more of them for each update and each exchange
    offload : Offload
        what devices with parts of a divided model hold in the memory of their hosts

    Raises
    ------
    InputError
        A choice or number without meaning.
    """

    gpus: int = 0
    nodes: tuple[str, ...] = ()
    split: Literal["even", "proportional"] = "even"
    speeds: tuple[float, ...] = ()
    exact: Literal["auto", "yes", "no"] = "auto"
    alone: PerSecond = 0.0
    alone_accumulate: int = 0
    offload: Offload = field(default_factory=Offload)

    def __post_init__(self) -> None:
        refuse_types(self)
        problems = []
        if self.gpus < 0:
            problems.append(Problem("a number of GPUs is expected, or 0 for all", key="gpus", value=str(self.gpus)))
        turns = self.alone_accumulate
        if turns < 0:
            message = "a number of micro-batches is expected, or 0 for those of this run"
            problems.append(Problem(message, key="alone_accumulate", value=str(turns)))
        elif turns and not self.alone:
            expected = "alone = the measured rate"
            message = "nothing was measured with so many micro-batches"
            problems.append(Problem(message, key="alone_accumulate", value=str(turns), expected=expected))
        if problems:
            raise InputError(problems)


@dataclass(frozen=True, slots=True)
class SlowLink:
    """A link that is slow for a time, or down.

    Parameters
    ----------
    link : str
        a link of the machine that is slow for a time, or down
    share : float
        what is left of its capacity [1]
    start : float
        when it becomes slow [s]
    end : float
        when it is as before [s]; 0 for never

    Raises
    ------
    InputError
        A share or times without meaning, or a link that never comes back, so that nothing would end.
    """

    link: str = ""
    share: Ratio = 0.0
    start: Seconds = 0.0
    end: Seconds = 0.0

    def __post_init__(self) -> None:
        _ = self.changes

    @property
    def changes(self) -> tuple[LinkChange, ...]:
        """Its changes; none without a name."""
        return slowed(self.link, self.share, self.start, self.end)


@dataclass(frozen=True, slots=True)
class Disturbances:
    """Disturbances that make equal devices and links unequal.

    Parameters
    ----------
    variation : float
        standard deviation of the time that equal devices take for the same work [1]; all wait for the slowest
    jitter : str
        how the time of each device's kernels varies from step to step, each device's by itself
    cv : float
        standard deviation of that time over its mean [1]
    stragglers : int
        devices that are always slow, the last ones
    slowdown : float
        how many times as long stragglers take [1]
    links : tuple of SlowLink
        links that are slow for a time, or down
    noise : Noise
        of model parallelism: what varies from kernel to kernel

    Raises
    ------
    InputError
        A distribution, number of stragglers or slowdown without meaning.
    """

    variation: Ratio = 0.0
    jitter: Family = "constant"
    cv: Ratio = 0.1
    stragglers: int = 0
    slowdown: float = 1.0
    links: tuple[SlowLink, ...] = ()
    noise: Noise = field(default_factory=Noise)

    def __post_init__(self) -> None:
        refuse_types(self)
        _ = self.paces
        problems = []
        if self.stragglers < 0:
            message = "a number of 0 or more is expected"
            problems.append(Problem(message, key="stragglers", value=str(self.stragglers)))
        if not 0.0 < self.slowdown < math.inf:
            problems.append(Problem("a factor above 0 is expected", key="slowdown", value=f"{self.slowdown:g}"))
        if self.noise.draws and self.steady and self.noise.steady:
            message, expected = "nothing varies from step to step", "jitter, or noise of kernels, or none"
            problems.append(Problem(message, key="noise.draws", value=str(self.noise.draws), expected=expected))
        if problems:
            raise InputError(problems)

    @property
    def paces(self) -> Distribution:
        """Of the time of a device's kernels from step to step, over its mean [1]."""
        return distribution(self.jitter, cv=self.cv)

    @property
    def steady(self) -> bool:
        """Whether no device's time varies from step to step."""
        return self.paces == Constant()

    @property
    def changes(self) -> tuple[LinkChange, ...]:
        """Changes of links."""
        return tuple(change for link in self.links for change in link.changes)


@dataclass(frozen=True, slots=True)
class Job:
    """A training job.

    Parameters
    ----------
    model : Workload
        what is trained
    strategy : Strategy
        how devices share the work, and how gradients or weights travel
    layout : Layout or None
        how the model and its batch are divided among ranks; None: data parallelism over the devices that train
    devices : Devices
        the devices that train
    stack : Stack
        what the library or program brings
    input : Input
        the data
    disturbances : Disturbances
        what makes devices and links unequal
    failures : Failures or None
        what fails during the whole run of `total` steps; None: nothing does
    batch : int
        samples of a step on all devices together (strong scaling)
    batch_per_gpu : int
        samples of a step on each device instead (weak scaling)
    steps : int
        steps of the optimizer that are simulated
    total : int
        steps of the whole run, if more: those not simulated take the mean of the others but the first

    Raises
    ------
    InputError
        All that has no meaning.
    """

    model: Workload
    strategy: Strategy = field(default_factory=DDP)
    layout: Layout | None = None
    devices: Devices = field(default_factory=Devices)
    stack: Stack = field(default_factory=Stack)
    input: Input = field(default_factory=Input)
    disturbances: Disturbances = field(default_factory=Disturbances)
    failures: Failures | None = None
    batch: int = BATCH
    batch_per_gpu: int = 0
    steps: int = 3
    total: int = 0

    def __post_init__(self) -> None:
        refuse_types(self)
        problems = []
        if self.steps < 1:
            problems.append(Problem("at least one step is needed", key="steps", value=str(self.steps)))
        if self.total and self.total < self.steps:
            message = f"{self.steps} steps are simulated, more than the whole run has"
            problems.append(Problem(message, key="total", value=str(self.total), expected=f"{self.steps} or more"))
        if self.failures is not None and not self.total:
            message = "failures are simulated over the whole run"
            problems.append(Problem(message, key="total", value="0", expected="total = steps of the whole run"))
        problems += self._of_saving()
        if self.batch_per_gpu and self.batch != BATCH:
            expected = "batch or batch_per_gpu"
            problems.append(
                Problem("batch_per_gpu stands for it", key="batch", value=str(self.batch), expected=expected)
            )
        problems += [
            *self._of_layout(),
            *self._of_stack(),
            *self._of_alone(),
            *self._of_waits(),
            *self.input.problems(scatters=isinstance(self.strategy, DataParallel)),
        ]
        if problems:
            raise InputError(problems)

    def _of_saving(self) -> list[Problem]:
        """Storage of checkpoints that hold nothing; those of model parallelism hold its states."""
        if self.failures is None or self.failures.saving.size or isinstance(self.strategy, ModelParallel):
            return []
        saving, message = self.failures.saving, "a state of no size takes no time to save"
        given = (("storage", saving.storage), ("per_node", saving.per_node))
        return [
            Problem(message, key=f"failures.{key}", value=str(value), expected="size") for key, value in given if value
        ]

    def _of_alone(self) -> list[Problem]:
        """Micro-batches of one device, where the strategy has none."""
        if not self.devices.alone_accumulate or isinstance(self.strategy, DDP | LocalSGD):
            return []
        message, expected = "the strategy updates after each mini-batch", "strategy ddp or local-sgd"
        value = str(self.devices.alone_accumulate)
        return [Problem(message, key="alone_accumulate", value=value, expected=expected)]

    def _of_waits(self) -> list[Problem]:
        """The copy of a mini-batch that is waited for, where none follows the work of the step before."""
        placed = self.input.batches
        if not isinstance(self.strategy, DDP) or "batch" not in self.strategy.waits or placed == "host":
            return []
        message = "mini-batches are copied ahead, on a stream of their own" if placed == "ahead" else "none is copied"
        expected = 'no "batch", or batches = "host"'
        return [Problem(f"{message}: no copy is waited for", key="waits", value="batch", expected=expected)]

    def _of_layout(self) -> list[Problem]:
        """What of a layout cannot be simulated, or does not fit the devices."""
        layout, devices = self.layout, self.devices
        if isinstance(self.strategy, ModelParallel):
            return self._of_model_parallel(layout)
        if self.disturbances.noise != Noise():
            message, expected = "strategy model-parallel alone has it", "jitter and cv"
            return [Problem(message, key="noise", value=str(self.disturbances.noise), expected=expected)]
        if devices.offload:
            message, expected = "every device has the whole model", "strategy model-parallel"
            return [Problem(message, key="offload", value=str(devices.offload), expected=expected)]
        if layout is None:
            return []
        if not layout.replicated:
            message = "this strategy gives every device the whole model: it simulates plain data parallelism"
            expected = "dp = the number of devices alone, or strategy model-parallel"
            return [Problem(message, key="layout", value=str(layout), expected=expected)]
        count = len(devices.nodes) or devices.gpus
        if count and count != layout.dp:
            key = "devices" if devices.nodes else "gpus"
            message = "the layout has another number of ranks"
            return [Problem(message, key=key, value=str(count), expected=f"{layout.dp}, as dp, or no {key}")]
        return []

    def _of_model_parallel(self, layout: Layout | None) -> list[Problem]:
        """What model parallelism does not simulate, or has no use for."""
        if layout is None:
            message, expected = "a layout is needed: ranks along each dimension", "[layout] with tp, pp and dp"
            return [Problem(message, key="layout", expected=expected)]
        assert isinstance(self.strategy, ModelParallel)
        problems, exchange = list[Problem](), self.strategy.context_exchange
        if layout.cp == 1 and exchange != type(self.strategy)().context_exchange:
            message, expected = "every rank has whole sequences", "layout.cp above 1, or no context_exchange"
            problems.append(Problem(message, key="context_exchange", value=exchange, expected=expected))
        count, devices = len(self.devices.nodes) or self.devices.gpus, self.devices
        if count and count != layout.ranks:
            key, message = "devices" if devices.nodes else "gpus", "the layout has another number of ranks"
            expected = f"{layout.ranks}, or no {key}"
            problems.append(Problem(message, key=key, value=str(count), expected=expected))
        usual = Job(self.model)
        unused = [(one, getattr(self, one), getattr(usual, one)) for one in ("input", "batch_per_gpu")]
        unused += [(one, getattr(devices, one), getattr(usual.devices, one)) for one in ("split", "alone")]
        problems += [
            Problem("model parallelism has no use for it", key=key, value=str(value), expected="its default")
            for key, value, default in unused
            if value != default
        ]
        return problems

    def _of_stack(self) -> list[Problem]:
        """A stack of another strategy, of kernels that the model does not run, or for servers where there are none."""
        stack, name = self.stack, type(self.strategy).__name__
        usual, model = Stack(), getattr(self.model, "model", None)
        for key, own in (
            ("optimizer", getattr(self.model, "optimizer", "")),
            ("kernels", getattr(self.model, "kernels", None) or getattr(model, "kernels", None)),
        ):
            value = getattr(stack, key)
            if value not in (getattr(usual, key), own):
                message = f"the model has other {key}" if own else "the model has none"
                expected = f"a model made with the stack's {key}, or a stack without"
                return [Problem(message, key=f"stack.{key}", value=str(value), expected=expected)]
        if stack.paces and not isinstance(self.strategy, ModelParallel):
            message, expected = "only divided models have paces", "a stack without, or model-parallel"
            return [Problem(message, key="stack.paces", value=stack.name or "paces", expected=expected)]
        own = not stack.strategy or isinstance(self.strategy, STRATEGIES[stack.strategy])
        plain = (stack.transport, stack.serving) == (ServerTransport(), Serving())
        if own and (plain or isinstance(self.strategy, Servers)):
            return []
        needed = stack.strategy or "servers"
        message, expected = f"this stack is of strategy {needed}, and has nothing for {name}", f"strategy {needed}"
        return [Problem(message, key="stack", value=stack.name, expected=f"{expected}, another stack, or none")]

    @property
    def gpus(self) -> int:
        """GPUs that take part, 0 for all."""
        return self.layout.ranks if self.layout is not None else self.devices.gpus

    def samples(self, devices: int) -> int:
        """Samples of one step of the optimizer on so many devices together."""
        return self.batch_per_gpu * devices or self.batch
