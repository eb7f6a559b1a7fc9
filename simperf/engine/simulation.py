"""One simulated machine at work: the clock and everything that lives on it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import simpy
from simpy.core import EmptySchedule, StopSimulation

from simperf.engine.device import DEFAULT_DEPTH, Device, DevicePart
from simperf.engine.host import Host
from simperf.engine.network import FlowNetwork
from simperf.engine.recorder import Recorder
from simperf.engine.share import Share
from simperf.errors import DeadlockError, ProgramError, nearest
from simperf.units import format_quantity

if TYPE_CHECKING:
    from simperf.engine.bucket import TokenBucket
    from simperf.engine.netstack import NetworkStacks
    from simperf.hardware import Machine

__all__ = ["Simulation"]


class Simulation:
    """The clock, the devices, hosts and links of a machine, and who watches.

    Parameters
    ----------
    machine : Machine, optional
        Without one there are no links, and devices and hosts have no limits.
    seed : int
        Seed of all random streams.
    recorder : Recorder, optional
        Collects the timeline; without one nothing is recorded.
    depth : float
        Launches that may be outstanding on a stream.
    most : int, optional
        Events that `run` may simulate.
    """

    def __init__(
        self,
        machine: Machine | None = None,
        *,
        seed: int = 0,
        recorder: Recorder | None = None,
        depth: float = DEFAULT_DEPTH,
        most: int | None = None,
    ) -> None:
        self.machine, self.seed, self.recorder, self.depth, self.most = machine, seed, recorder, depth, most
        self.env = simpy.Environment()
        self.network = FlowNetwork(self.env, machine.resources if machine else {}, recorder=recorder)
        self.devices: dict[str, Device] = {}
        self.hosts: dict[str, Host] = {}
        self.path = 0.0  # longest chain of dependent work finished so far, contention left out
        self._random: dict[str, np.random.Generator] = {}
        hosting = machine.hosting if machine is not None else None
        self._cores = Share(self.env, hosting.shared_cores) if hosting and hosting.shared_cores else None
        shaped = hosting.shaped if hosting else {}
        rates = machine.resources if machine is not None else {}
        self.buckets = self._buckets(shaped, rates) if shaped else {}
        self.stacks = self._stacks(hosting.stack) if hosting and hosting.stack else None

    def _buckets(self, shaped: Mapping[str, Any], rates: Mapping[str, float]) -> dict[str, TokenBucket]:
        """The token buckets that links are behind."""
        from simperf.engine.bucket import TokenBucket

        return {
            name: TokenBucket(self.network, name, rate=rates[name], burst=one.burst, peak=one.peak)
            for name, one in shaped.items()
        }

    def _stacks(self, costs: Any) -> NetworkStacks:
        """The network stacks of the machine's hosts."""
        from simperf.engine.netstack import NetworkStacks

        assert self.machine is not None
        machine = self.machine
        return NetworkStacks(
            self.env,
            self.network,
            costs,
            host=lambda node: self.host(machine.host_of(node)),
            route=machine.route,
            capacities=machine.resources,
            buckets=self.buckets,
        )

    @property
    def own_times(self) -> bool:
        """Whether the machine says what makes hosts differ from links alone: network stacks, or token buckets."""
        return self.stacks is not None or bool(self.buckets)

    @property
    def now(self) -> float:
        """Simulated time [s]."""
        return float(self.env.now)

    def device(self, name: str) -> Device:
        """The device at node `name`.

        Raises
        ------
        ProgramError
            The machine has no such node, or it is no device.
        """
        if name not in self.devices:
            part: DevicePart | None = None
            share: Share | None = None
            if self.machine is not None:
                node = self.machine.nodes.get(name)
                if node is None:
                    raise ProgramError(f"the machine has no device {name!r}{nearest(name, self.machine.gpus)}")
                if node.kind not in ("gpu", "cpu"):
                    raise ProgramError(f"{name!r} is a {node.kind}, no device: a GPU or a CPU is expected")
                part = cast("DevicePart", node.part) if node.kind == "gpu" else None
                if self.stacks is not None and node.kind == "cpu":
                    share = self.host(name).share
            self.devices[name] = Device(
                self.env, name, self.network, part=part, depth=self.depth, recorder=self.recorder, share=share
            )
        return self.devices[name]

    def host(self, name: str = "cpu0") -> Host:
        """The host at CPU node `name`; its cores are its part's."""
        if name not in self.hosts:
            cores = math.inf
            if self.machine is not None:
                node = self.machine.nodes.get(name)
                if node is None:
                    raise ProgramError(f"the machine has no host {name!r}{nearest(name, self.machine.ids('cpu'))}")
                cores = self.machine.cores(name)
            self.hosts[name] = Host(self.env, name, cores, share=self._cores)
        return self.hosts[name]

    def random(self, name: str) -> np.random.Generator:
        """The random stream called `name`: the same numbers for the same seed and name, whoever else draws."""
        if name not in self._random:
            words = np.frombuffer(hashlib.sha256(name.encode()).digest()[:16], dtype="<u4")
            seeds = np.random.SeedSequence(self.seed, spawn_key=tuple(int(word) for word in words))
            self._random[name] = np.random.default_rng(seeds)
        return self._random[name]

    def run(self, until: float | simpy.Event | None = None) -> float:
        """Let time pass until nothing is left to happen (or `until`); returns the time [s].

        Raises
        ------
        DeadlockError
            `until` is an event that can no longer come: the program waits for ever.
        ProgramError
            It takes more events than it may.
        """
        try:
            if self.most is not None and isinstance(until, simpy.Event):
                self._run_counted(until, self.most)
            else:
                self.env.run(until)
        except RuntimeError as error:
            # SimPy says so by a plain RuntimeError
            if isinstance(until, simpy.Event) and not until.triggered and type(error) is RuntimeError:
                raise DeadlockError(
                    "the program waits for something that never comes (a wait for an event that no stream records, "
                    "or a link whose bandwidth stays 0)"
                ) from None
            raise
        return self.now

    def _run_counted(self, until: simpy.Event, most: int) -> None:
        """Let time pass until an event has come, of as many others at most."""
        if until.callbacks is None:
            return
        until.callbacks.append(StopSimulation.callback)
        step = self.env.step
        try:
            for _ in range(most):
                step()
        except StopSimulation:
            return
        except EmptySchedule:
            raise RuntimeError("no event is left") from None
        clock = format_quantity(self.now, "s")
        raise ProgramError(
            f"{most:,} events are simulated, the clock is at {clock} and the end has not come: fewer or longer steps "
            "are expected, or --force (run.force = true), which sets no limit"
        )

    def floors(self, moved: Mapping[str, float] | None = None) -> dict[str, float]:
        """Times [s] that no schedule of the work done so far can beat, by what sets them; `moved` as of the network."""
        floors = {"critical path": self.path}
        links = self.network.floors(moved)
        floors["bandwidth"] = max(links.values(), default=0.0)
        floors["compute"] = max((device.share.floor() for device in self.devices.values()), default=0.0)
        floors["host"] = max((host.share.floor() for host in self.hosts.values()), default=0.0)
        return floors
