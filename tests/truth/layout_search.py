"""Layouts that a search finds beside published ones: ``python -m tests.truth.layout_search [NAME ...]``.

Llama 3 405B (arXiv 2407.21783, table 4) and MegaScale (arXiv 2402.15627, table 2) name the layout that was chosen for
many GPUs by its tp and pp; none has context parallelism. The search is among all layouts, those without context
parallelism, and those with the printed axes; ratios of the fastest steps say how far the published one is behind.
vTrain (arXiv 2312.12391) measured many layouts of one model on one number of GPUs: their order as measured beside
their order as predicted is told by Spearman's rank correlation.
"""

import sys
from collections import defaultdict

import numpy as np

from simperf.accuracy.large_cases import read_large_cases
from simperf.accuracy.large_jobs import case_time
from simperf.study.layouts import make_layouts, plan_layouts
from tests.truth.collectives import truth_folder

#: rows of one model and number of GPUs from which on their order is told
FEWEST = 8
#: MegaScale's model and what its table 3 adds to Megatron-LM, as rows of it are simulated (large_unprinted.toml)
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
    "parallel_block": True,
    "window": 1024,
    "window_layers": 96,
}
FEATURES = {"stack": "megascale", "product_parts": 4, "overlap_messages": True, "overlap_weights": True}
LLAMA = {"overlap_messages": True}
#: what is searched: model, program, server, GPUs, batch, shardings that are tried, and the axes that are printed; no
#: source prints micro-batches, chunks or recomputation; the FSDP of Llama 3 keeps weights, as zero-2 does
JOBS = {
    "Llama 3 405B on 8,192 H100": ("llama3-405b", LLAMA, "dgx-h100", 8192, 2048, (1, 2, 3), {"tp": 8, "pp": 16}),
    "Llama 3 405B on 16,384 H100": ("llama3-405b", LLAMA, "dgx-h100", 16384, 2048, (1, 2, 3), {"tp": 8, "pp": 16}),
    "MegaScale 175B on 256 A100": (MEGASCALE, FEATURES, "dgx-a100-80gb", 256, 768, (1, 3), {"tp": 8, "pp": 8}),
    "MegaScale 175B on 1,024 A100": (MEGASCALE, FEATURES, "dgx-a100-80gb", 1024, 768, (1, 3), {"tp": 8, "pp": 8}),
}
#: layouts that are searched, by the axes that they have: all, those without context parallelism, and the printed ones
SEARCHES = {"found": (), "found with cp=1": ("cp",), "published": ("cp", "tp", "pp")}


def searched(name, fixed):
    """The search of a job among layouts that have some of the printed axes."""
    model, program, server, gpus, batch, shardings, printed = JOBS[name]
    layouts = {"on": server, "gpus": gpus, "batch": batch, "sharding": [f"zero-{one}" for one in shardings]}
    layouts |= {key: value for key, value in {"cp": 1, **printed}.items() if key in fixed}
    tables = {"layouts": layouts, "program": program, "plan": {"force": True}}
    if isinstance(model, str):
        layouts["model"] = model
    else:
        tables["model"] = model
    return plan_layouts(make_layouts(tables), engine="local")


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
        plans = {what: searched(name, fixed) for what, fixed in SEARCHES.items()}
        published = plans["published"].winner.step
        for what, plan in plans.items():
            counts, first = plan.counts(), plan.winner
            print(f"{name}, {what} of {counts['layouts']:,} layouts, {counts['simulated']} simulated: ", end="")
            print(f"{first.choice.name}: {first.step:.3f} s, the published one {published / first.step - 1:+.1%}")
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
