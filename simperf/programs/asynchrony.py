"""Frontend and backend: what asynchronous execution saves, where it blocks, what it holds.

"Dive into Deep Learning", sections 12.1 and 12.2.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

from simperf.engine.kernel import Kernel
from simperf.errors import InputError, Problem, ProgramError
from simperf.execution import Program, item, launch, run, synchronize
from simperf.execution.session import Session
from simperf.programs.parameters import Count
from simperf.programs.registry import program
from simperf.units import Bytes, Ratio, Seconds

__all__ = ["async_chain", "expression", "forward_passes", "launch_queue", "run_ahead", "what_blocks"]


@program("async-chain", events=lambda given: 2.0 * given["n"])
def async_chain(
    m: Session, *, n: Count = 10_000, t1: Seconds = 1e-6, t2: Seconds = 2e-6, t3: Seconds = 1e-6, jitter: Ratio = 0.0
) -> Program:
    """Issue n operations to one stream and ask for the last result (section 12.2.2).

    Parameters
    ----------
    n : int
        operations
    t1 : float
        time of the frontend to issue one
    t2 : float
        time of the backend to execute one
    t3 : float
        time to hand a result back
    jitter : float
        each time is drawn between (1 - jitter) and (1 + jitter) of its value
    """
    if not 0.0 <= jitter <= 1.0:
        expected = "0 to 1: with 1, times are drawn between 0 and twice their values"
        raise InputError(Problem("no time is negative", key="jitter", value=f"{jitter:g}", expected=expected))
    gpu, draw = m.gpu(), m.rng("async-chain")

    def kernel() -> Kernel:
        a, b, c = (1 + jitter * float(x) for x in draw.uniform(-1, 1, 3)) if jitter else (1.0, 1.0, 1.0)
        return Kernel("y = x + 1", t2 * b, launch=t1 * a, result=t3 * c)

    same = kernel()
    for _ in range(n):
        yield launch(kernel() if jitter else same, gpu)
    yield synchronize(gpu)
    m.rate("operations per second", n)
    m.work("operations", n)


@program("what-blocks", events=lambda given: 2.0 * given["n"])
def what_blocks(
    m: Session,
    *,
    n: Count = 2000,
    every: Count = 100,
    how: Literal["nothing", "item", "print", "numpy", "synchronize"] = "item",
    t1: Seconds = 5e-6,
    t2: Seconds = 20e-6,
    t3: Seconds = 10e-6,
) -> Program:
    """Look at a result now and then, and see what the frontend waits for (section 12.2.1).

    Parameters
    ----------
    n : int
        operations
    every : int
        operations between two looks
    how : str
        what is done to look: item, print and numpy wait for their stream, synchronize for the device
    t1 : float
        time of the frontend to issue one operation
    t2 : float
        time of the backend to execute one
    t3 : float
        time to hand a result back
    """
    gpu = m.gpu()
    kernel = Kernel("y = x + 1", t2, launch=t1, result=t3)
    issued = 0.0
    for i in range(1, n + 1):
        yield launch(kernel, gpu)
        issued = m.now
        if how != "nothing" and i % every == 0:
            yield synchronize(gpu) if how == "synchronize" else item(gpu)
    m.metric("frontend done after", issued, "s")
    m.work("operations", n)
    yield synchronize(gpu)


@program("launch-queue", events=lambda given: 2.0 * given["n"])
def launch_queue(m: Session, *, n: Count = 3000, t1: Seconds = 4.5e-6, t2: Seconds = 190e-6) -> Program:
    """Launch without waiting until the launch queue is full.

    Parameters
    ----------
    n : int
        launches
    t1 : float
        time of the frontend to issue one operation
    t2 : float
        time of the backend to execute one
    """
    gpu = m.gpu()
    kernel = Kernel("kernel", t2, launch=t1, result=0.0)
    stamps = [m.now]
    for _ in range(n):
        yield launch(kernel, gpu)
        stamps.append(m.now)
    steps = [after - before for before, after in pairwise(stamps)]
    quick = next((i for i, step in enumerate(steps) if step > 2 * t1), n)
    m.work("launches", n)
    m.metric("launches until blocked", quick)
    m.metric("time per launch at first", sum(steps[: min(quick, 1000)]) / min(quick, 1000), "s")
    if quick + 1 < n:
        m.metric("time per launch afterwards", sum(steps[quick + 1 :]) / (n - quick - 1), "s")
    yield synchronize(gpu)


@program("run-ahead", events=lambda given: 2.0 * given["batches"] * given["ops"])
def run_ahead(
    m: Session,
    *,
    batches: Count = 100,
    ops: Count = 100,
    nbytes: Bytes = 10e6,
    t1: Seconds = 5e-6,
    t2: Seconds = 20e-6,
    t3: Seconds = 10e-6,
    sync_every: int = 0,
) -> Program:
    """Let the frontend run ahead of the backend and watch the memory that is held (section 12.2.2).

    Parameters
    ----------
    batches : int
        mini-batches
    ops : int
        operations of one mini-batch
    nbytes : float
        memory that an operation holds from its launch to its end
    t1 : float
        time of the frontend to issue one operation
    t2 : float
        time of the backend to execute one
    t3 : float
        time to hand a result back
    sync_every : int
        mini-batches between two synchronisations, 0 for none before the end
    """
    gpu = m.gpu()
    kernel = Kernel("layer", t2, launch=t1, result=t3, holds=nbytes)
    for batch in range(1, batches + 1):
        for _ in range(ops):
            yield launch(kernel, gpu)
        if sync_every and batch % sync_every == 0:
            yield synchronize(gpu)
    yield synchronize(gpu)
    m.metric("peak memory", gpu.memory.peak, "B")
    m.work("operations", batches * ops)


@program("forward-passes", events=lambda given: 2.0 * given["passes"] * len(given["sizes"]))
def forward_passes(
    m: Session,
    *,
    sizes: list[int] = [512, 256, 128, 2],
    batch: Count = 1,
    passes: Count = 1000,
) -> Program:
    """Call a perceptron again and again, as eager, scripted or captured code (section 12.1.3).

    Parameters
    ----------
    sizes : list of int
        widths of the layers, input first
    batch : int
        rows of the input
    passes : int
        calls
    """
    from simperf.workload import mlp

    gpu = m.gpu()
    net = m.module(mlp(sizes, batch), gpu, name="mlp")
    for _ in range(passes):
        yield run(net, gpu)
    yield synchronize(gpu)
    m.metric("time per pass", m.now / passes, "s")
    m.work(f"rows through {'-'.join(map(str, sizes))}", passes * batch)


@program("expression", events=lambda given: 4.0 * given["times"])
def expression(m: Session, *, elements: Count = 1_000_000, times: Count = 1) -> Program:
    """Compute z = x * y + 2 from two fresh arrays and print it (section 12.2.1, figure 12.2.2).

    Parameters
    ----------
    elements : int
        length of each array
    times : int
        repetitions
    """
    from simperf.workload import OpGraph, make_op, product_plus_two

    if times < 1:
        raise ProgramError(f"times is {times}; 1 or more is expected")
    gpu = m.gpu()
    inner = product_plus_two(elements)
    fresh = [make_op({"op": "fill", "elements": elements, "name": name, "outputs": [name]}) for name in ("x", "y")]
    net = m.module(OpGraph([*fresh, *inner.ops]), gpu, name="z = x * y + 2")
    for _ in range(times):
        yield run(net, gpu)
        yield synchronize(gpu)
    m.work("elements", elements * times)
