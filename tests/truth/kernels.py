"""Kernels by shape beside measured tables: ``python -m tests.truth.kernels KIND`` (data: SIMPERF_TRUTH).

``--fit`` prints the constants that the fitting halves give, as the architectures' files have them.
"""

import argparse
import sys

import numpy as np

from simperf.accuracy.fits.products import fit_products
from simperf.accuracy.lattice_profile import kernel_calls, lattice_models
from simperf.accuracy.product_tables import product_tables
from simperf.accuracy.products import SHOWN_ONLY, product_grades
from simperf.report.accuracy_output import product_lines
from tests.truth import attention_shapes, moe_shapes, scaled_figures
from tests.truth.kernel_intervals import interval_grades
from tests.truth.ratchet import truth_folder

#: median absolute errors that are asked for: own GPU's other shapes, GPU left out; by layer and whether M >= 1024
GOALS = {("bfloat16", True): (5, 12), ("bfloat16", False): (9, 18), ("fp8", True): (8, 18), ("fp8", False): (8, 18)}


def gemm(folder):
    """Lines of the table of products, and of its medians over the data-centre GPUs."""
    every = list(product_grades(product_tables(folder)))
    yield from product_lines(every)
    for (layer, large), asked in GOALS.items():
        rows = [one for one in every if (one.layer, one.large) == (layer, large) and one.gpu not in SHOWN_ONLY]
        own, left = (100 * np.mean([getattr(one, name) for one in rows]) for name in ("profile", "left_out"))
        yield (
            f"mean of the data-centre GPUs' medians, {layer}, {size_of(large)}: "
            f"own {own:.1f} % (goal {asked[0]}), left out {left:.1f} % (goal {asked[1]})"
        )


def intervals(folder):
    """Lines of the coverage of profiles' intervals, and of all together; one graded call of twelve."""
    every = list(interval_grades(kernel_calls(folder), draws=60, every=12))
    for one in every:
        width = 100 * np.expm1(one.width)
        yield f"{one.gpu:16} {one.title:58} {one.held:4} of {one.graded:4}, half-width {width:5.1f} %"
    held, graded = (sum(getattr(one, key) for one in every) for key in ("held", "graded"))
    yield f"all: {held} of {graded} in their 90 % interval: {100 * held / graded:.1f} %"


def spreads(folder):
    """Lines of each table's spreads, by the first size of its kernels."""
    for table in kernel_calls(folder):
        for name, model in lattice_models([table]).items():
            found = ", ".join(
                f"{key} = {value:.3g}" for key, value in model.fixed.items() if not key.startswith("node")
            )
            yield f"{table.part.name} {name}: {found}"


def size_of(large):
    """Rows of activations in words."""
    return "M >= 1024" if large else "M < 1024"


def constants(folder):
    """Lines of the constants that the fitting halves give."""
    tables = product_tables(folder)
    found = fit_products([one for one in tables if one.part.name not in SHOWN_ONLY], thin=1)
    yield "shared: " + ", ".join(f"{key} = {value:.3g}" for key, value in found.shared.items())
    shown = [one for one in tables if one.part.name in SHOWN_ONLY]
    own = {**found.own, **(fit_products(shown, shared=found.shared, thin=1).own if shown else {})}
    for name, values in own.items():
        yield f"{name}: " + ", ".join(f"{key} = {value:.3g}" for key, value in values.items())


#: kind of kernel -> lines of its table, and of its constants
KINDS = {
    "gemm": (gemm, constants),
    "attention": (attention_shapes.report, attention_shapes.fits),
    "moe": (moe_shapes.report, moe_shapes.fits),
    "intervals": (intervals, spreads),
    "scaled": (scaled_figures.report, scaled_figures.fits),
}


def main(arguments=None):
    """Print the table of a kind of kernel, or its constants."""
    parser = argparse.ArgumentParser(prog="python -m tests.truth.kernels", description=__doc__)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--fit", action="store_true", help="print constants instead of errors")
    given = parser.parse_args(arguments)
    for text in KINDS[given.kind][given.fit](truth_folder()):
        print(text, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
