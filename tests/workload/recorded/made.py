"""Traces as torch's profiler writes them, made by hand."""

import gzip
import json


class Trace:
    """A trace of one rank; times are in microseconds."""

    def __init__(self, *, gpu="NVIDIA A100-SXM4-80GB", rank=0, world=1, origin=1_700_000_000_000_000.0):
        self.origin, self.events, self.number = origin, [], 0
        self.head = {
            "schemaVersion": 1,
            "deviceProperties": [{"id": 0, "name": gpu}],
            "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": world},
        }

    def event(self, cat, name, start, length, pid=1, tid=1, **args):
        """Any event."""
        row = {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": self.origin + start, "dur": length}
        self.events.append({**row, "args": args})

    def step(self, number, start, length):
        """A step of the profiler."""
        self.event("user_annotation", f"ProfilerStep#{number}", start, length)

    def launch(self, name, call, start, length, *, stream=7, tid=1, cost=2.0, cat="kernel", op=None, **args):
        """A kernel with the call that launches it, and the operation around that."""
        self.number += 1
        runtime = {"kernel": "cudaLaunchKernel", "gpu_memcpy": "cudaMemcpyAsync"}[cat]
        if op is not None:
            self.event("cpu_op", op.pop("name"), call - 1, cost + 2, tid=tid, **op)
        self.event("cuda_runtime", runtime, call, cost, tid=tid, correlation=self.number)
        given = {"device": 0, "stream": stream, "correlation": self.number, **args}
        self.event(cat, name, start, length, 0, stream, **given)

    def call(self, name, start, length, *, tid=1):
        """A call of the runtime that launches nothing."""
        self.event("cuda_runtime", name, start, length, tid=tid, correlation=900_000 + len(self.events))

    def save(self, path):
        """Write it; returns the path."""
        text = json.dumps({**self.head, "traceEvents": self.events})
        data = text.encode()
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
        return path


ELEMENTWISE = "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>"
PRODUCT = "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_nn"
REDUCE = "ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def bound_by_device(path, *, count=20, length=200.0, name=ELEMENTWISE, **given):
    """Kernels of a length, launched every 10 us; the host waits at the end."""
    trace, at = Trace(**given), 10.0
    for number in range(count):
        trace.launch(name, 10.0 * number, at, length)
        at += length + 1.0
    trace.call("cudaDeviceSynchronize", 10.0 * count, at - 10.0 * count + 4.0)
    trace.step(3, 0.0, at + 10.0)
    return trace.save(path)


def bound_by_host(path, *, count=50, every=25.0, length=4.0):
    """Kernels that end before the next one is launched."""
    trace = Trace()
    for number in range(count):
        trace.launch(ELEMENTWISE, every * number, every * number + 8.0, length)
    trace.call("cudaDeviceSynchronize", every * count, 3.0)
    return trace.save(path)


def overlapped(path):
    """A backward pass whose gradients are reduced on a stream of their own, which the update waits for."""
    trace = Trace(world=2)
    for number in range(4):
        trace.launch(PRODUCT, 10.0 * number, 20.0 + 100.0 * number, 99.0)
    trace.call("cudaEventRecord", 41.0, 1.0)
    trace.call("cudaStreamWaitEvent", 43.0, 1.0)
    trace.launch(REDUCE, 45.0, 421.0, 150.0, stream=20)
    trace.call("cudaStreamWaitEvent", 50.0, 1.0)
    trace.launch(ELEMENTWISE, 52.0, 573.0, 30.0)
    trace.call("cudaStreamSynchronize", 60.0, 550.0)
    return trace.save(path)


def of_ranks(folder, *, late=300.0, ranks=2, origin=0.0, known=True):
    """A trace of each rank: a product, which takes longer on the last rank, an all-reduce of 64 MB, and an update."""
    found = []
    for rank in range(ranks):
        trace = Trace(rank=rank, world=ranks, origin=1_700_000_000_000_000.0 + origin * rank)
        own = 400.0 + (late if rank == ranks - 1 else 0.0)
        trace.launch(PRODUCT, 0.0, 10.0, own)
        end = 10.0 + 400.0 + late + 2.0 + 500.0
        args = {"Collective name": "allreduce", "In msg nelems": 32_000_000, "dtype": "Half", "Group size": ranks}
        trace.call("cudaStreamWaitEvent", 18.0, 1.0)
        trace.launch(REDUCE, 20.0, 10.0 + own + 2.0, end - (10.0 + own + 2.0), stream=20, **(args if known else {}))
        trace.call("cudaStreamWaitEvent", 25.0, 1.0)
        trace.launch(ELEMENTWISE, 30.0, end + 2.0, 50.0)
        trace.call("cudaDeviceSynchronize", 40.0, end + 60.0 - 40.0)
        found.append(trace.save(folder / f"rank{rank}.json.gz"))
    return found
