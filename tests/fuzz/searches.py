"""Searches of layouts, by options and by a file, and what-if questions on jobs."""

import json

import tomli_w

from tests.fuzz import mutations
from tests.fuzz.source import Source

__all__ = ["JOB", "SEARCH", "asked", "search_case", "search_sources", "what_if_case"]

SMALL = {"layers": 4, "hidden": 256, "heads": 8, "vocabulary": 1000, "sequence": 128}
#: after which a search simulates no more, so that it ends within the time of a case whatever is searched
BOUND = "5 s"
#: a file of a search, of which each machine has a price
SEARCH = {
    "plan": {"tokens": 1e9, "deadline": "30 days", "budget": "1e5 USD"},
    "model": SMALL,
    "layouts": {
        **{"on": ["dgx-a100", "p3-8xlarge"], "batch": 16, "tp": [1, 2], "pp": [1, 2], "cp": 1, "microbatch": [1, 2]},
        **{"sharding": "zero-1", "recompute": ["none"], "precision": ["bf16-master", "fp16"], "top": 1},
        "time": BOUND,
    },
    "program": {"stack": "megatron-core"},
    "prices": {"own": {"dgx-a100": "20 USD/h"}},
    "failures": {"node_mtbf": "2000 h", "checkpoint": "100 GB/s", "restart": "10 min", "runs": 2},
}
#: a job of which questions are asked
JOB = {
    "machine": {
        **{"kind": "cluster", "server": "dgx-a100", "count": 2},
        "fabric": {"type": "rail", "switch": "infiniband-hdr-switch", "link": "infiniband-hdr"},
    },
    "frontend": {"use": "pytorch"},
    "model": SMALL,
    "layout": {"dp": 4, "tp": 2, "pp": 2, "sharding": "zero-1"},
    "program": {
        **{"use": "train", "strategy": "model-parallel", "precision": "bf16-master"},
        **{"stack": "megatron-core", "batch": 16, "steps": 1, "sequence_parallel": True},
    },
}
MACHINES = ("dgx-a100", "dgx-h100", "p3-8xlarge", "gb200-nvl72", "dgx-a100-x4", "mi300x-8gpu", "nd96asr-v4", "l40s")
#: options of a search with values that may be given; all others are odd
OPTIONS = {
    "--on": MACHINES,
    "--gpus": ("8", "4,8", "1", "16", "72", "7", "0"),
    "--batch": ("8", "16", "7", "1", "1000000001"),
    "--sequence": ("128", "1000", "1"),
    "--precision": ("bf16-master", "fp16,bf16-master", "fp8", "fp32"),
    "--vary": ("tp=1,2", "tp=8", "pp=1..4:4", "sharding=none,zero-3", "schedule=gpipe", "microbatch=3", "ep=2", "x=1"),
    "--stack": ("torch-fsdp2", "megatron-core", "llm-foundry", "torch"),
    "--tokens": ("1e9", "1", "1e30", "-1"),
    "--deadline": ("1 day", "1 us", "0 s"),
    "--budget": ("100 USD", "1e-9 USD"),
    "--price": ("10 USD/h", "0 USD/h", "10 USD"),
    "--top": ("2", "0", "1000"),
    "--within": ("5 %", "0 %", "2", "-1 %"),
    "--time": ("0 s", "1 s", "1 us"),
    "--explain": ("1", "99"),
    "--format": ("table", "json", "csv"),
    "--plot": ("out.svg", "no/such.svg"),
    "--report": ("out.html",),
    "--output": ("out.json", "no/such.json"),
    "--all": (),
    "--fresh": (),
}
#: changes of a job by one word
CHANGES = (
    *("network=2x", "network=0.5x", "network=0x", "network=1x", "network=1e300x", "nvlink=2x", "domain=4", "domain=72"),
    *("host0=0.8x", "host1=2x", "host7=0.5x", "host999999=2x", "precision=fp8", "precision=fp32", "precision=int8"),
    *("batch=0.5x", "batch=2x", "batch=0.3x", "batch=8", "program.steps=2", "layout.tp=4", "program.batch=8"),
    *(
        "machine.count=1",
        "machine.fabric.link=infiniband-ndr",
        "layout={ dp = 8, tp = 2 }",
        "network",
        "=2x",
        "run.seed=3",
    ),
)


def search_sources():
    """The file of a search."""
    lines = (
        ("plan", "{}"),
        ("plan", "{}", "--format", "json"),
        ("check", "{}"),
        ("plan", "{}", "--output", "out.json"),
    )
    return [Source("search", "plan.toml", tomli_w.dumps(SEARCH).encode(), lines, {})]


def search_case(rng):
    """A search by options: its words, its file, and what is odd about it."""
    raw = json.dumps(SMALL).encode() if rng.random() < 0.02 else tomli_w.dumps(SMALL).encode()
    words = ["plan", "--layouts", "m.toml" if rng.random() < 0.9 else rng.choice(["llama3.2-1b", "lenet", "nothing"])]
    words += ["--on", rng.choice(["dgx-a100", "dgx-a100", "dgx-h100", *MACHINES])]
    words += rng.choice([["--vary", "tp=1,2"], ["--vary", "microbatch=1"], []])
    words += ["--tokens", "1e9"] if rng.random() < 0.7 else []
    words += ["--price", "10 USD/h"] if rng.random() < 0.5 else []
    changed = []
    for name in rng.sample(sorted(OPTIONS), rng.choice([1, 2, 2, 3, 4])):
        words += [name] if not OPTIONS[name] else [name, _value(rng, OPTIONS[name])]
        changed.append(name)
    words += [] if "--time" in changed else ["--time", BOUND]
    return tuple(words), raw, " ".join(changed)


def what_if_case(rng):
    """Questions on a job: words, the job's file, and what is odd about it."""
    tree = json.loads(json.dumps(JOB))
    changed = []
    if rng.random() < 0.3:
        changed = [str(mutations.change(rng, tree))]
    words = ["run", "s.toml", "--what-if", asked(rng)]
    words += rng.choice([[], ["--format", "json"], ["--format", "csv"], ["--report", "out.html"], ["--samples", "2"]])
    try:
        raw = tomli_w.dumps(tree).encode("utf-8", "surrogatepass")
    except (TypeError, ValueError, RecursionError):
        raw = b"[machine]\n"
    return tuple(words), raw, " ".join(changed)


def asked(rng):
    """One to four changes, some of them odd."""
    return ",".join(_value(rng, CHANGES) for _ in range(rng.choice([1, 1, 2, 3, 4]))) or "network=2x"


def _value(rng, usual):
    """One of the usual values, or one that is near it."""
    old = rng.choice(usual)
    if rng.random() < 0.8:
        return old
    found = mutations.value(rng, old)
    return (found if isinstance(found, str) else repr(found)).replace("\0", "") or "''"
