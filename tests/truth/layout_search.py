"""Layouts that a search finds beside published ones: ``python -m tests.truth.layout_search [NAME ...]``.

Llama 3 405B (arXiv 2407.21783, table 4) and MegaScale's baseline (arXiv 2402.15627, table 2) name the layout that was
chosen for many GPUs. The search finds it, or another layout; both are simulated, and the ratio of their steps says how
much faster the one that was found is predicted to be. vTrain (arXiv 2312.12391) measured many layouts of one model on
one number of GPUs: their order as measured beside their order as predicted is told by Spearman's rank correlation.
"""

import sys
from collections import defaultdict

import numpy as np

from simperf.accuracy.large_cases import read_large_cases
from simperf.accuracy.large_jobs import case_time
from simperf.layout import Layout
from simperf.run import run
from simperf.scenario import make_scenario
from simperf.study.layouts import make_layouts, plan_layouts
from simperf.study.layouts.axes import LayoutChoice, layers_of_stages
from simperf.study.layouts.scenarios import layout_scenario
from tests.truth.collectives import truth_folder

#: rows of one model and number of GPUs from which on their order is told
FEWEST = 8
MEGASCALE = {
    "layers": 96,
    "hidden": 12288,
    "heads": 128,
    "ffn": 49152,
    "vocabulary": 64000,
    "sequence": 2048,
    "activation": "gelu",
    "norm": "layer",
    "positions": "learned",
    "bias": True,
    "tied": True,
}
#: what is searched: model, server, GPUs, batch, and the published tp, pp, chunks and recomputation
JOBS = {
    "Llama 3 405B on 8,192 H100": ("llama3-405b", "dgx-h100", 8192, 2048, (8, 16, 4, "selective-op")),
    "Llama 3 405B on 16,384 H100": ("llama3-405b", "dgx-h100", 16384, 2048, (8, 16, 4, "selective-op")),
    "MegaScale 175B on 256 A100": (MEGASCALE, "dgx-a100-80gb", 256, 768, (8, 8, 6, "selective")),
    "MegaScale 175B on 1,024 A100": (MEGASCALE, "dgx-a100-80gb", 1024, 768, (8, 8, 6, "selective")),
}


def searched(name, **layouts):
    """The fastest layout of a job, and the step of the published one [s]."""
    model, server, gpus, batch, (tp, pp, chunks, recompute) = JOBS[name]
    tables = {"layouts": {"on": server, "gpus": gpus, "batch": batch, "sharding": ["zero-1", "zero-3"], **layouts}}
    tables["layouts"].setdefault("recompute", list(dict.fromkeys(["none", recompute, "full"])))
    if isinstance(model, str):
        tables["layouts"]["model"] = model
    else:
        tables["model"] = model
    request = make_layouts({**tables, "program": {"overlap_messages": True}})
    counts = layers_of_stages(request.model.layers, pp * chunks)
    layout = Layout(tp=tp, pp=pp, dp=gpus // (tp * pp), sharding="zero-1")
    published = LayoutChoice(layout, 1, "interleaved", chunks, recompute, stage_layers=counts)
    scenario = make_scenario(layout_scenario(request, request.machines[0], published))
    step = run(scenario, record=False).metrics["time per step"].value
    return plan_layouts(request, engine="serial"), published, step


def rank_correlation(one, other):
    """Spearman's rank correlation of two rows of numbers, ties by their mean rank."""

    def ranks(values):
        order = np.argsort(values, kind="stable")
        found = np.empty(len(values))
        found[order] = np.arange(len(values))
        for value in set(values):
            like = [index for index, each in enumerate(values) if each == value]
            found[like] = np.mean(found[like])
        return found

    return float(np.corrcoef(ranks(one), ranks(other))[0, 1])


def vtrain_orders(folder, models=()):
    """Cases of vTrain by model and GPUs, of all or those with so many layers: measured and predicted steps [s]."""
    cases = [one for one in read_large_cases(folder / "llm", ("vtrain_a100",))[0] if one.time]
    alike = defaultdict(list)
    for case in cases:
        alike[case.model.layers, case.model.hidden, case.gpus, case.layout.batch].append(case)
    for key, several in alike.items():
        if len(several) >= FEWEST and (not models or key[0] in models):
            yield key, several, [one.time for one in several], [case_time(one) for one in several]


def main(names):
    """Print the figures of all, or of those that are named by a word of their name."""
    for name in JOBS:
        if names and not any(one in name for one in names):
            continue
        found, published, step = searched(name)
        first, counts = found.winner, found.counts()
        print(f"{name}: {counts['layouts']} layouts, {counts['simulated']} simulated")
        print(f"  published {published.name}: {step:.3f} s")
        print(
            f"  found     {first.choice.name}: {first.step:.3f} s, {step / first.step - 1:+.1%} for the published one"
        )
    if names and "vTrain" not in names:
        return
    for (layers, hidden, gpus, batch), cases, measured, predicted in vtrain_orders(truth_folder()):
        best = cases[int(np.argmin(measured))]
        behind = predicted[cases.index(best)] / min(predicted) - 1
        correlation = rank_correlation(measured, predicted)
        print(f"vTrain, {layers} layers of {hidden} on {gpus} GPUs, batch {batch}: {len(cases)} layouts, ", end="")
        print(f"rank correlation {correlation:.3f}; the fastest measured is {behind:.1%} behind the fastest predicted")


if __name__ == "__main__":
    main(sys.argv[1:])
