"""A star of GPUs and a run on it, for the tests of strategies."""

from simperf.engine.simulation import Simulation
from simperf.execution.session import Session
from simperf.hardware import Catalog, build_machine
from simperf.training.options import owners
from simperf.training.replica import Layers
from simperf.training.trainer import Training, train

CATALOG = Catalog.load()
MIB = 2**20


def star(n, *, bandwidth="50 GB/s", latency="250 ns", pcie="16 GB/s"):
    """GPUs on a hub that adds no limit of its own, each with its own link to the host."""
    ids = f"gpu{{0..{n - 1}}}"
    return build_machine(
        {
            "node": [
                {"id": ids, "gpu": "v100-sxm2-16gb"},
                {"id": "hub", "kind": "switch"},
                {"id": "cpu0", "cpu": "xeon-8168"},
            ],
            "link": [
                {"a": ids, "b": "hub", "bandwidth": bandwidth, "latency": latency},
                {"a": "cpu0", "b": "hub", "bandwidth": pcie, "latency": "250 ns"},
            ],
        },
        CATALOG,
    )


def layers(count=5, *, forward=0.0, backward=5e-3, nbytes=100 * MIB, launch=0.0, **more):
    """Layers in round numbers, launched at no cost."""
    return Layers(count, forward, backward, nbytes, launch=launch, **more)


def session(machine):
    return Session(Simulation(machine))


def run(machine, workload, n=0, **options):
    """Play a run of data parallelism; the session after it."""
    m = session(machine)
    nodes = options.pop("nodes", None) or machine.gpus[: n or None]
    options.setdefault("batch", len(nodes))
    if options.get("strategy", "ddp") in owners("algorithm"):
        options.setdefault("algorithm", "ring")  # idealised: its time is known in closed form
    m.play(train(m, Training(workload, tuple(nodes), **options)))
    return m


def metric(m, name):
    return m.metrics[name][0]
