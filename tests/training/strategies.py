"""A star of GPUs and a run on it, for the tests of strategies."""

from simperf.engine.simulation import Simulation
from simperf.errors import UnknownNameError
from simperf.execution.session import Session
from simperf.hardware import Catalog, build_machine
from simperf.training.driver import train
from simperf.training.jitter import FAMILIES, Constant
from simperf.training.jitter import distribution as make
from simperf.training.job import Devices, Disturbances, Input, Job, SlowLink
from simperf.training.replica import Layers
from simperf.training.servers.kvstore import StoreOptions
from simperf.training.stack import ServerTransport, Serving
from simperf.training.strategies import REPLICATED, STRATEGIES, has_option

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


PARTS = {"devices": Devices, "input": Input, "disturbances": Disturbances}


def job(workload, nodes=(), *, strategy="ddp", jitter=None, feeding=None, exact=None, **options):
    """A job of options by name, each given to the type that has it; the rest is the job's."""
    if strategy not in STRATEGIES:
        raise UnknownNameError("strategy", strategy, STRATEGIES)
    kinds = {"strategy": STRATEGIES[strategy], **PARTS}
    parts = {name: {} for name in kinds}
    parts["devices"] |= {"nodes": tuple(nodes), "exact": {None: "auto", True: "yes", False: "no"}[exact]}
    if jitter is not None and jitter != Constant():
        parts["disturbances"] |= law(jitter)
    if feeding is not None:
        names = ("decode", "workers", "prefetch", "disk", "stored")
        parts["input"] |= {name: getattr(feeding, name) for name in names} | law(feeding.jitter)
    given = {}
    for key, value in options.items():
        owner = next((name for name, kind in kinds.items() if key in kind.__dataclass_fields__), "")
        (parts[owner] if owner else given)[key] = value
    made = {name: kind(**parts[name]) for name, kind in kinds.items()}
    return Job(workload, **{**made, **given})


def store_options(**options):
    """Options of a store by name, each given to the type that has it."""
    kinds = {"transport": ServerTransport, "serving": Serving}
    parts = {
        name: kind(**{key: options.pop(key) for key in list(options) if key in kind.__dataclass_fields__})
        for name, kind in kinds.items()
    }
    return StoreOptions(**parts, **options)


def law(distribution):
    """Family and coefficient of variation of a distribution with mean 1."""
    family = next(name for name in FAMILIES if type(make(name)) is type(distribution))
    return {"jitter": family, **({"cv": distribution.cv} if hasattr(distribution, "cv") else {})}


def down(link, share=0.0, start=0.0, end=0.0):
    """A link that is slow for a time."""
    return (SlowLink(link, share, start, end),)


def run(machine, workload, n=0, **options):
    """Play a run of data parallelism; the session after it."""
    m = session(machine)
    nodes = () if "layout" in options else options.pop("nodes", None) or machine.gpus[: n or None]
    options.setdefault("batch", len(nodes))
    if options.get("strategy", "ddp") in REPLICATED and has_option(options.get("strategy", "ddp"), "algorithm"):
        options.setdefault("algorithm", "ring")  # idealised: its time is known in closed form
    m.play(train(m, job(workload, nodes, **options)))
    return m


def metric(m, name):
    return m.metrics[name][0]
