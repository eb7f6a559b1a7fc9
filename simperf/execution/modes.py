"""Modes of execution: what the frontend pays for an operation and when it waits.

A mode does not touch the program. The same generator runs eagerly, synchronously,
scripted, fused, compiled or as a captured graph; only what happens at each ``launch`` and
``run`` differs.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from simperf.engine.items import GraphLaunch, Marker, WaitFor
from simperf.engine.kernel import Kernel
from simperf.errors import UnknownNameError
from simperf.execution.module import Module
from simperf.execution.thread import Launch, Spend, Thread

__all__ = ["MODES", "Mode", "mode"]


@dataclass(frozen=True, slots=True)
class Mode:
    """One way of executing a program.

    Parameters
    ----------
    name : str
    waits : bool
        The frontend waits for every operation and its result.
    scripted : bool
        No Python per operation: the frontend pays the scripted share of each launch.
    fuses : bool
        A module's operations are fused before they run.
    captures : bool
        A module is recorded on its first run and replayed by one launch afterwards.
    guarded : bool
        A module is compiled just in time, as by torch.compile: each call checks guards and unpacks its arguments in
        Python (the frontend's `compiled_call`), and each of its launches takes the frontend's `compiled`.
    lanes : int
        Streams over which a module's independent operations are spread by their data
        dependencies (the dependency engine of MXNet); 1 keeps program order, as a CUDA
        stream does.
    title : str
        One line for people.
    """

    name: str
    waits: bool = False
    scripted: bool = False
    fuses: bool = False
    captures: bool = False
    guarded: bool = False
    lanes: int = 1
    title: str = ""

    def launch_time(self, frontend: Thread, kernel: Kernel | GraphLaunch) -> float:
        """Time of the frontend to issue one operation [s]."""
        time = kernel.launch
        if time is None:
            profile = frontend.profile
            if isinstance(kernel, GraphLaunch):
                time = profile.graph_launch + profile.graph_node * len(kernel.kernels)
            elif self.guarded and profile.compiled is not None:
                return profile.compiled
            else:
                time = profile.launch
        return time * frontend.profile.scripted if self.scripted else time

    def run(self, frontend: Thread, module: Module, stream: Any) -> Generator[Any, Any, Any]:
        """Execute one call of `module`: yields the verbs that it comes down to."""
        if self.guarded and frontend.profile.compiled_call:
            yield Spend(frontend.profile.compiled_call, f"call {module.name}", "overhead")
        if self.captures and module in frontend.captured:
            yield Launch(frontend.captured[module], stream)
            return
        kernels = module.kernels(fused=self.fuses)
        if self.captures:
            # Recording runs nothing on the device's own time line; the first call pays for both.
            yield from (Spend(frontend.profile.capture, f"capture {k.name}", "overhead") for k in kernels)
            profile = frontend.profile
            frontend.captured[module] = GraphLaunch(f"graph {module.name}", kernels, gap=profile.graph_gap)
        # Layers are called in Python, spread evenly over the operations; a traced graph calls none of them.
        layers = 0 if self.scripted else module.graph.layers
        each = frontend.profile.layer_call * layers / len(kernels) if kernels else 0.0
        if self.lanes > 1:
            yield from self._dataflow(module, kernels, stream, each)
        else:
            for kernel in kernels:
                if each:
                    yield Spend(each, "call layers", "overhead")
                yield Launch(kernel, stream)

    def _dataflow(
        self, module: Module, kernels: tuple[Kernel, ...], stream: Any, each: float
    ) -> Generator[Any, Any, Any]:
        """Launch in program order over several streams; markers carry the dependencies across."""
        device = stream.device
        streams = [device.stream_after(stream, lane) for lane in range(self.lanes)]
        tail: dict[int, int] = {}  # lane -> last operation on it
        placed: dict[int, tuple[int, Marker]] = {}
        for index, (kernel, producers) in enumerate(zip(kernels, module.predecessors(fused=self.fuses), strict=True)):
            own = [placed[p][0] for p in producers if tail[placed[p][0]] == p]
            idle = [lane for lane in range(self.lanes) if lane not in tail]
            done = [lane for lane in tail if lane not in own and placed[tail[lane]][1].done.triggered]
            lane = (own or idle or done or [index % self.lanes])[0]
            for producer in producers:
                if placed[producer][0] != lane:
                    streams[lane].submit(WaitFor(placed[producer][1]))
            if each:
                yield Spend(each, "call layers", "overhead")
            yield Launch(kernel, streams[lane])
            marker = Marker(device.env, f"{kernel.name} done")
            streams[lane].submit(marker)
            placed[index], tail[lane] = (lane, marker), index


#: The built-in modes, by the name that a scenario uses.
MODES: dict[str, Mode] = {
    m.name: m
    for m in (
        Mode("eager", title="operations are launched one by one, the frontend does not wait"),
        Mode("synchronous", waits=True, title="the frontend waits for every operation and its result"),
        Mode("scripted", scripted=True, title="launched one by one without Python (TorchScript)"),
        Mode("fused", scripted=True, fuses=True, title="traced: chains of operations become one kernel"),
        Mode("captured", captures=True, title="recorded once, replayed by one launch (CUDA graph)"),
        Mode("fused-captured", scripted=True, fuses=True, captures=True, title="traced, fused and captured"),
        Mode("compiled", scripted=True, fuses=True, guarded=True, title="compiled just in time: fused, behind guards"),
        Mode(
            "compiled-captured",
            scripted=True,
            fuses=True,
            captures=True,
            guarded=True,
            title="compiled just in time and captured",
        ),
        Mode("dataflow", lanes=4, title="independent operations run side by side (dependency engine)"),
    )
}


def mode(name: str) -> Mode:
    """The mode called `name`.

    Raises
    ------
    UnknownNameError
        There is no such mode; the message names the nearest.
    """
    try:
        return MODES[name]
    except KeyError:
        raise UnknownNameError("execution mode", name, MODES) from None
