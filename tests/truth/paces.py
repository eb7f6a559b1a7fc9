"""Paces of kernels in the steps of stacks: ``python -m tests.truth.paces [STACK...] [--limit SECONDS]``.

A pace is the share of their isolated speed that kernels keep in a step, one for each stack and generation of GPUs. A
stack whose base has a pace there, and that has none of its own, has that of the base. It is fitted to the cases (data:
SIMPERF_TRUTH) of one half of the configurations and graded on the other half. Which half a configuration is in follows
from its fields alone; rows that repeat it are in the same half. The share is that with which the median of the half has
no bias, from one play without a pace and one with a first guess. Nothing is written.
"""

import argparse
import json
import math
import sys
import tempfile
from functools import cache, partial
from pathlib import Path
from statistics import fmean, median
from zlib import crc32

import tomli_w

from simperf.accuracy.large_cases import read_large_cases
from simperf.accuracy.large_jobs import case_tables
from simperf.accuracy.large_stacks import stack_of
from simperf.errors import SimperfError
from simperf.files import read_toml
from simperf.programs.stack_file import stack_path
from simperf.run import run
from simperf.scenario import make_scenario
from simperf.workload.transformers.transformer_file import transformer_table
from tests.truth.collectives import truth_folder
from tests.truth.large_store import limited

#: fields that say which half a configuration is in; a field of these types that is not named moves none
MODEL = frozenset(
    (
        *("format", "name", "title", "source", "layers", "hidden", "heads", "vocabulary", "sequence", "kv_heads"),
        *("head_dim", "ffn", "activation", "norm", "norm_bias", "positions", "tied", "bias", "qkv_bias", "qk_norm"),
        *("embed_norm", "sinks", "window", "window_layers", "kv_rank", "q_rank", "rope_dim", "value_dim", "dropout"),
        *("experts", "experts_per_token", "expert_ffn", "router_bias", "shared_experts", "dense_layers", "mtp"),
    )
)
LAYOUT = ("dp", "tp", "pp", "cp", "ep", "etp", "sharding", "dp_replicate", "order")
JOB = ("batch", "microbatch", "precision", "products", "schedule", "chunks", "recompute")
#: fewer configurations say nothing of a stack
FEWEST = 4
#: parts of an architecture that are a generation of their own
GENERATIONS = {"blackwell": ("b300-sxm-270gb", "gb300")}
#: of the share, by which a case's time changes; below, its hosts or messages set its time
LEAST_POWER = 0.1


def fitted(case):
    """Whether a case is in the half of the configurations that paces are fitted to."""
    how, machine = case.layout, case.machine
    model = sorted((key, value) for key, value in transformer_table(case.model).items() if key in MODEL)
    layout = ", ".join(f"{name}={getattr(how.layout, name)!r}" for name in LAYOUT)
    named = (
        *map(repr, (case.family, model, machine.gpu.name, machine.servers)),
        f"Layout({layout})",
        *(repr(getattr(how, name)) for name in JOB),
    )
    return crc32(f"({', '.join(named)})".encode()) % 2 == 0


def generation(gpu):
    """Architecture of a GPU, and the parts of its generation; all others of the architecture if there are none."""
    parts = GENERATIONS.get(gpu.architecture, ())
    return gpu.architecture, parts if gpu.name in parts else ()


def owner(name, architecture, parts):
    """The stack whose pace a stack has: it, or the nearest of its bases that has one in its file."""
    at = name
    while at:
        data = read_toml(stack_path(at)).data
        for one in data.get("pace", ()):
            if (one["architecture"], tuple(one.get("gpus", ()))) == (architecture, parts):
                return at
        at = data.get("base")
    return name


def time_at(case, share, folder):
    """Time of an iteration with a pace [s]."""
    tables = case_tables(case)
    name, (architecture, parts) = tables["program"]["stack"], generation(case.machine.gpu)
    path = Path(folder) / f"{name}-{'-'.join(parts) or architecture}-{share:.6f}.toml"
    pace = {"architecture": architecture, "share": share, "source": "a trial"} | ({"gpus": parts} if parts else {})
    path.write_text(tomli_w.dumps({"format": 1, "kind": "stack", "title": name, "base": name, "pace": [pace]}))
    tables["program"]["stack"], tables["run"], tables["scenario"]["title"] = str(path), {"force": True}, "a case"
    return _played(json.dumps(tables))


@cache
def _played(tables):
    return float(run(make_scenario(json.loads(tables)), record=False).metrics["time per step"].value)


def errors(cases, at):
    """Logarithm of measured over predicted time of the cases that can be played, by name."""
    found = {}
    for one in cases:
        try:
            found[one.name] = math.log(one.time / at(one))
        except SimperfError as error:
            print(f"{one.name}: {error}", file=sys.stderr, flush=True)
    return found


def share_without_bias(alone, guessed, guess):
    """Share with which the median case has no error; a case's time is taken as a power of the share."""
    wanted = []
    for name in alone.keys() & guessed.keys():
        power = (alone[name] - guessed[name]) / -math.log(guess)
        if power > LEAST_POWER:  # else its kernels set no pace
            wanted.append(-alone[name] / power)
    return min(1.0, math.exp(median(wanted)))


def told(values):
    """Median and mean of the absolute errors, and the median signed one of predictions, as percentages."""
    off = [math.expm1(-value) for value in values]
    return f"{median(map(abs, off)):.1%}, mean {fmean(map(abs, off)):.1%} ({median(off):+.1%})" if off else "-"


def main(arguments=None):
    """Fit and grade."""
    parser = argparse.ArgumentParser(prog="python -m tests.truth.paces", description=__doc__)
    parser.add_argument("stacks", nargs="*", help="all by default")
    parser.add_argument("--limit", type=int, default=30, help="seconds of the processor for a simulate [%(default)s]")
    given = parser.parse_args(arguments)
    groups = {}
    for one in read_large_cases(truth_folder() / "llm")[0]:
        try:
            name = owner(stack_of(one), *generation(one.machine.gpu))
        except SimperfError:
            continue
        if one.time is not None and not one.machine.why_not and (not given.stacks or name in given.stacks):
            groups.setdefault((name, *generation(one.machine.gpu)), []).append(one)

    with tempfile.TemporaryDirectory() as folder:

        def at(share):
            def time(case):
                with limited(given.limit):
                    return time_at(case, share, folder)

            return partial(errors, at=time)

        print("| stack | GPUs | fitted: rows | without | share | graded: rows | without | with |")
        print("|---|---|--:|--:|--:|--:|--:|--:|")
        for (name, architecture, parts), cases in sorted(groups.items()):
            half, others = [one for one in cases if fitted(one)], [one for one in cases if not fitted(one)]
            alone = at(1.0)(half)
            if len(alone) < FEWEST:
                continue
            guess = min(0.98, math.exp(-median(alone.values())))
            share = round(share_without_bias(alone, at(guess)(half), guess), 2)
            before, after = at(1.0)(others), at(share)(others)
            both = before.keys() & after.keys()
            row = (name, ", ".join(parts) or architecture, len(alone), told(alone.values()), f"{share:.2f}", len(both))
            cells = (*row, told([before[one] for one in both]), told([after[one] for one in both]))
            print("|", " | ".join(map(str, cells)), "|", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
