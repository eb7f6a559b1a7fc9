"""Files to start from, by kind, each with the command lines that read it."""

import gzip
import json
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

import tomli_w

from simperf.scenario import shipped_scenarios
from tests.calibrate.nccl_logs import nccl_log
from tests.fuzz.jobs import job_sources
from tests.fuzz.searches import search_sources
from tests.fuzz.source import Source, toml_bytes
from tests.workload.recorded import made

ROOT = Path(__file__).parents[2]
CALIBRATION = ROOT / "calibration"


SHOWN = ("table", "json", "csv")
#: shipped scenarios that run within a second
QUICK = (
    *("d2l/async", "d2l/blocking", "d2l/caches", "d2l/copy-overlap", "d2l/dependencies", "d2l/disks", "d2l/fusion"),
    *("d2l/gpus", "d2l/links", "d2l/memory-bursts", "d2l/packets", "d2l/ring-8-v100", "d2l/round-trip", "d2l/servers"),
    *("d2l/input-pipeline", "d2l/hybrid", "d2l/regimes", "d2l/run-ahead", "d2l/streams", "d2l/sync-160mb"),
    *("training/accumulate", "training/buckets", "training/checkpoint-by-hand", "training/epoch-imagenet"),
    *("training/fail-server", "training/jitter-stragglers", "training/kv-priority", "training/lenet-by-hand"),
    *("training/ps-servers", "training/slow-link", "training/straggler", "training/uneven-steps", "training/overlap"),
)
PROFILED = '[machine]\nuse = "p3-8xlarge"\n[calibration]\nuse = "p.toml"\n[program]\nuse = "%s"\nn = 10\n'
MODEL = (
    '[machine]\nuse = "p3-8xlarge"\n[model]\n%s\n[program]\nuse = "train"\nbatch = 8\nsteps = 2\n'
    '[strategy]\nkind = "ddp"\n'
)
CONFIG = {
    "model_type": "llama",
    "hidden_size": 256,
    "intermediate_size": 688,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 1000,
    "max_position_embeddings": 128,
    "tie_word_embeddings": False,
    "hidden_act": "silu",
}
TRANSFORMER = {"layers": 2, "hidden": 256, "heads": 4, "vocabulary": 1000, "sequence": 128}
PLAN = {
    "plan": {"model": "lenet", "samples": 100_000, "epochs": 2, "deadline": "20 h"},
    "candidates": {"instances": ["p3-2xlarge", "p3-8xlarge"], "nodes": [1], "batch_per_gpu": [32]},
    "limits": {"price": "100 USD/h"},
    "prices": {"own": {"p3-2xlarge": "3 USD/h"}},
    "failures": {"node_mtbf": "1000 h", "runs": 2},
}
STACK = {
    "format": 1,
    "kind": "stack",
    "title": "own",
    "strategy": {"kind": "servers", "overlap": False},
    "transport": {"connections": 1},
    "source": {"overlap": "its code", "connections": "its code"},
}
CONSTANT = {"value": 5e11, "low": 4e11, "high": 6e11, "stderr": 1e10, "unit": "B/s", "draws": [0.9, 1.0, 1.1]}
SMALL = {"value": 2e-6, "low": 1e-6, "high": 3e-6, "stderr": 1e-7, "unit": "s", "draws": [0.9, 1.0, 1.1]}
FITTED = {"points": 9, "error": 0.01, "scatter": 0.01, "between": 0.02}
PROFILE = {
    "format": 1,
    "kind": "profile",
    "title": "own",
    "gpu": "v100-sxm2-16gb",
    "model": {
        "kernel.elementwise-fp32": {**FITTED, "constant": {"rate": CONSTANT, "overhead": SMALL}},
        "frontend.launch": {**FITTED, "constant": {"launch": SMALL}},
        "link.pcie3-x16": {**FITTED, "constant": {"bandwidth": {**CONSTANT, "value": 9e9, "low": 8e9, "high": 1e10}}},
    },
}


def _event(cat, name, ts, dur, **args):
    return {
        "ph": "X",
        "cat": cat,
        "name": name,
        "pid": 1,
        "tid": 7,
        "ts": 1695835543008415 + ts,
        "dur": dur,
        "args": args,
    }


KINETO = {
    "deviceProperties": [{"id": 0, "name": "NVIDIA A100"}],
    "traceEvents": [
        _event("cpu_op", "aten::add", 0, 10),
        _event("cuda_runtime", "cudaLaunchKernel", 2, 5, correlation=1),
        _event("kernel", "add", 12, 20, device=0, stream=7, correlation=1),
        _event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 30, 4, device=0, stream=20, bytes=4000),
    ],
}
BODY = {"time": 50.0, "alg_bw": 1.0, "bus_bw": 10.0, "nwrong": 0}
NCCL = {
    "args": ["all_reduce_perf"],
    "config": {"nthreads": 1, "ngpus": 8, "devices": [{"hostname": "a", "device_info": "A GPU"}] * 8},
    "nccl_version": "2.20",
    "results": [{"size": 4**i, "type": "float", "out_of_place": BODY, "in_place": BODY} for i in range(2, 9)],
}


@lru_cache(maxsize=1)
def sources():
    """All kinds, each with its files."""
    found = {}
    found["scenario"] = [_scenario(name, path) for name, path in shipped_scenarios().items()]
    found["run"] = [
        Source("run", "s.toml", shipped_scenarios()[name].read_bytes(), _played("{}"), {}) for name in QUICK
    ]
    found["part"] = [_part(path) for path in sorted((ROOT / "simperf/hardware/data").rglob("*.toml"))]
    check = (("check", "{}"),)
    play = tuple(
        ("run", name, *more) for name in ("k.toml", "c.toml") for more in ((), ("--samples", "3"), ("--format", "json"))
    )
    beside = {"k.toml": PROFILED % "additions", "c.toml": PROFILED % "sends"}
    found["profile"] = [Source("profile", "p.toml", toml_bytes(PROFILE), check + play, beside)] * 4 + [
        Source("profile", path.name, path.read_bytes(), check, {})
        for path in [
            CALIBRATION / "boxed-cluster-zen5-2c.toml",
            *sorted((ROOT / "simperf/hardware/data/profile").glob("*.toml")),
        ]
    ]
    found["stack"] = [
        Source("stack", path.name, path.read_bytes(), check, {})
        for path in sorted((ROOT / "simperf/programs/stacks").glob("*.toml"))
    ] + [Source("stack", "own.toml", toml_bytes(STACK), check, {})]
    found["plan"] = [
        Source("plan", "plan.toml", toml_bytes(PLAN), (*check, ("plan", "{}"), ("plan", "{}", "--format", "json")), {})
    ]
    model = (ROOT / "simperf/workload/zoo/lenet.json").read_bytes()
    named = {"s.toml": MODEL % 'name = "m.json"'}
    found["model"] = [
        Source(
            "model",
            "m.json",
            model,
            (("zoo", "show", "{}"), ("run", "s.toml"), ("run", "s.toml", "--format", "json")),
            named,
        ),
        Source(
            "model",
            "m.toml",
            toml_bytes(TRANSFORMER),
            (("zoo", "show", "{}"), ("run", "s.toml")),
            {"s.toml": MODEL % 'name = "m.toml"'},
        ),
        Source(
            "model",
            "config.json",
            json.dumps(CONFIG).encode(),
            (("run", "s.toml"), ("check", "s.toml")),
            {"s.toml": MODEL % 'config = "config.json"'},
        ),
    ]
    fit = (
        ("calibrate", "fit", "{}"),
        ("calibrate", "fit", "{}", "-o", "out.toml"),
        ("calibrate", "validate", "p.toml", "{}"),
    )
    replay = (("calibrate", "cluster", "--replay", "{}"), ("calibrate", "fit", "{}"))
    found["recording"] = [
        Source("recording", "d.json", _recording("cpu-epyc-zen5-2c-1", 60), fit, {"p.toml": tomli_w.dumps(PROFILE)}),
        Source("recording", "b.json", _recording("boxed-cluster-zen4-2c-ordinary", 40), replay, {}),
    ]
    imported = (("calibrate", "import", "{}", "-o", "out.json"), ("calibrate", "import", "{}"))
    measured = ("collective", "all-reduce", "--server", "dgx-a100", "--measured", "{}")
    log = nccl_log({4**i: 1e-5 + 4**i / 1e11 for i in range(2, 13)}, 8).encode()
    table = b"size [MiB],time [us],ranks\n1,50,8\n2,80,8\n4,140,8\n8,260,8\n"
    sends = b"nbytes,seconds\n" + b"".join(b"%d,%g\n" % (10**i, 1e-4 + 10**i / 1e8) for i in range(1, 7))
    found["log"] = [
        Source("log", "t.json", json.dumps(KINETO).encode(), imported, {}),
        Source("log", "n.json", json.dumps(NCCL).encode(), (*imported, measured), {}),
        Source("log", "n.txt", log, (*imported, measured), {}),
        Source("log", "t.csv", table, (*imported, measured), {}),
        Source("log", "sends.csv", sends, (("calibrate", "fit", "{}"),), {}),
    ]
    replays = tuple(("replay", "{}", *each) for each in ((), ("--on", "dgx-h100"), ("--on", "l4"), ("--step", "3")))
    found["replay"] = [Source("replay", "step.json", raw, replays, {}) for raw in replayed()]
    found["job"] = job_sources(replayed())
    found["search"] = search_sources()
    found["result"] = [Source("result", "r.json", raw, _shown(), {}) for raw in results()]
    found["finished"] = [
        Source("finished", "plan.json", finished(), (("@simperf.study.planning.planner.TrainingPlan.load", "{}"),), {})
    ]
    return found


def _played(file):
    more = ((), ("--format", "json"), ("--format", "csv"), ("--seed", "3"))
    return (*(("run", file, *each) for each in more), ("compare", file), ("check", file), ("check", file, "--run"))


def _shown():
    return (
        *(("show", "{}", "--format", each) for each in SHOWN),
        ("compare", "{}", "{}"),
        ("show", "{}", "--plot", "p.svg"),
        ("show", "{}", "--trace", "t.json"),
    )


def _scenario(name, path):
    return Source("scenario", "s.toml", path.read_bytes(), (("check", "{}"),), {})


def _part(path):
    kind = path.parent.name
    lines = (("check", "{}"),) if kind not in ("server", "cluster") else (("check", "{}"), ("topo", "{}"))
    return Source("part", path.name, path.read_bytes(), lines, {})


def _recording(name, most):
    """A recording with a part of its points."""
    data = json.loads(gzip.decompress((CALIBRATION / f"{name}.json.gz").read_bytes()))
    rows = data["measurements"]
    data["measurements"] = rows[:: max(1, len(rows) // most)]
    return json.dumps(data).encode()


@lru_cache(maxsize=1)
def replayed():
    """Recorded steps: of a host and a device, of several streams, of a rank among others."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        files = [made.bound_by_device(folder / "a.json", count=4), made.overlapped(folder / "b.json")]
        packed = made.of_ranks(folder)[0]
        return [*(one.read_bytes() for one in files), gzip.decompress(packed.read_bytes())]


@lru_cache(maxsize=1)
def results():
    """Saved results."""
    import simperf

    return [simperf.run(name).to_bytes() for name in ("d2l/sync-160mb", "training/jitter-stragglers")]


@lru_cache(maxsize=1)
def finished():
    """A finished plan."""
    import simperf

    found = simperf.plan(PLAN, cache=False)
    return json.dumps(found.to_dict()).encode()
