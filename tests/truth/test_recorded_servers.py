"""Asynchronous workers and a server of the program `parameter-server`, beside the recordings of clusters in one box.

The recordings are real runs of torch on hosts of one machine; each host is a plain machine here, with the link's rate,
what Ethernet, IP and TCP leave of it, and the computing time of the recording's step on a single host. The cores that
the hosts share, and the processor's time for messages, are left out: points at rates where these bind are too.
"""

from pathlib import Path
from statistics import mean, median

import pytest

from simperf.calibrate.cluster.scenarios import compute_of
from simperf.calibrate.dataset import Dataset
from simperf.cost import CostSettings
from simperf.engine.simulation import Simulation
from simperf.execution.session import Session
from simperf.hardware import Catalog, build_machine
from simperf.programs import PROGRAMS

FOLDER = Path(__file__).parents[2] / "calibration"
RECORDINGS = sorted(FOLDER.glob("boxed-cluster-*.json.gz"))
#: payload over bytes on the wire: TCP with timestamps in frames of 1,500 B
PAYLOAD = 0.956
#: fastest links that bind [B/s]
LINKS = 62.5e6
SEEDS = 3


def _machine(catalog, workers, rate):
    link = {"b": "hub", "bandwidth": f"{PAYLOAD * rate} B/s", "latency": "50 us"}
    table = {
        "node": [
            {"id": f"gpu{{0..{workers - 1}}}", "gpu": "v100-pcie-16gb"},
            {"id": "cpu0", "cpu": "xeon-e5-2698v4"},
            {"id": "hub", "kind": "switch"},
        ],
        "link": [{"a": f"gpu{{0..{workers - 1}}}", **link}, {"a": "cpu0", **link}],
    }
    return build_machine(table, catalog)


def _rate(machine, compute, steps, seed, **options):
    """Updates a second of all workers."""
    session = Session(Simulation(machine, seed=seed), cost=CostSettings(sharp=True))
    layers = {"layers": 1, "forward": compute.forward, "backward": compute.backward, "weights": compute.nbytes}
    free = {"add": 0.0, "apply": 0.0, "batch": 1, "mode": "asynchronous"}
    session.play(PROGRAMS["parameter-server"].function(session, steps=steps, **layers, **free, **options))
    return session.metrics["samples per second"][0]


@pytest.fixture(scope="module")
def errors():
    """Relative errors of all points that the links bind, with uneven shares (the default) and with even ones."""
    catalog, machines = Catalog.load(), {}
    found = {"uneven": [], "even": []}
    for number, path in enumerate(RECORDINGS):
        data = Dataset.load(path)
        compute = compute_of(data)["mlp-8x256"]
        for point in data.select("server/asynchronous"):
            workers, rate, steps = (int(point.number(key)) for key in ("ranks", "rate", "steps"))
            if workers == 1 or rate > LINKS:
                continue
            key = (workers, rate)
            machines[key] = machine = machines.get(key) or _machine(catalog, *key)
            seeds = range(number * SEEDS, (number + 1) * SEEDS)
            uneven = mean(_rate(machine, compute, steps, seed) for seed in seeds)
            found["uneven"].append(uneven / point.median - 1)
            found["even"].append(_rate(machine, compute, steps, 0, uneven=0.0) / point.median - 1)
    return found


def test_workers_that_fall_out_of_step_are_as_fast_as_real_ones(errors):
    assert len(errors["uneven"]) >= 12 * 8
    assert median(map(abs, errors["uneven"])) < 0.10
    assert abs(median(errors["uneven"])) < 0.05


def test_workers_in_step_for_ever_are_slower_than_real_ones(errors):
    """What uneven shares are for: with even ones every second transfer waits for a port that is idle the other way."""
    better = sum(abs(one) < abs(other) for one, other in zip(errors["uneven"], errors["even"], strict=True))
    assert better > 0.75 * len(errors["even"])
