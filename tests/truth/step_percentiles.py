"""Percentiles of steps beside logged ones: ``python -m tests.truth.large_models [FAMILY...] --percentiles``.

Each case whose source prints percentiles of single steps is played with each distribution of noise; without one all its
percentiles are the same. Ratios to the median are told: what is missed of the median itself is no question of noise.
"""

import time
from fnmatch import fnmatch
from statistics import median

from simperf.accuracy.large_cases import LeftOut, read_large_cases
from simperf.accuracy.large_grades import reasons_counted
from simperf.errors import SimperfError
from tests.truth.step_noise import PERCENTS, drawn_ratios, measured_ratios, noise_distributions


def percentile_lines(folder, families=(), *, only="*", draws=0):
    """Lines of the table, one after the other, then medians by distribution and what is left out."""
    cases, left = read_large_cases(folder, tuple(families))
    chosen = [one for one in cases if fnmatch(one.name, only) and measured_ratios(one)]
    missed = {}
    ratios = " | ".join(f"p{percent}/p50 measured | predicted" for percent in PERCENTS)
    yield f"| case | GPUs | varies | {ratios} | simulated in |"
    yield "|---|--:|---|" + "--:|" * (2 * len(PERCENTS) + 1)
    for one in chosen:
        measured = measured_ratios(one)
        for noise in noise_distributions():
            begun = time.process_time()
            try:
                drawn = drawn_ratios(one, noise, draws=draws)
            except SimperfError as error:
                left.append(LeftOut(one.family, one.name, (str(error).splitlines()[0],)))
                break
            for percent in PERCENTS:
                missed.setdefault((noise.name, percent), []).append((measured[percent], drawn[percent]))
            told = " | ".join(f"{measured[percent]:.4f} | {drawn[percent]:.4f}" for percent in PERCENTS)
            spent = time.process_time() - begun
            yield f"| {one.name} | {one.gpus} | {noise.name} | {told} | {spent:.0f} s |"
    yield ""
    yield "| varies | ratio | rows | median measured | predicted | median of what is missed | without noise |"
    yield "|---|---|--:|--:|--:|--:|--:|"
    for (noise, percent), pairs in missed.items():
        errors = (
            median(abs(drawn / measured - 1) for measured, drawn in pairs),
            median(abs(1 / measured - 1) for measured, _ in pairs),
        )
        middles = (median(each) for each in zip(*pairs, strict=True))
        numbers = " | ".join([*(f"{one:.4f}" for one in middles), *(f"{100 * one:.2f} %" for one in errors)])
        yield f"| {noise} | p{percent}/p50 | {len(pairs)} | {numbers} |"
    yield ""
    for (family, reason), count in reasons_counted(left).items():
        yield f"left out: {family}: {reason} ({count} cases)"
