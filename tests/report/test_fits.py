"""Tables of fits: how wide the intervals are stands beside how many points they hold."""

from simperf.accuracy.fits.rows import FitRow
from simperf.report.fits import fits_markdown

NONE = float("nan")
ROWS = [
    FitRow("Kernels", "a", "every second size", 8, 8, 0.02, 0.05, -0.1, 0.875, 0.2, 0.10, "one", width=0.12),
    FitRow("Kernels", "b", "every second size", 8, 4, 0.02, 0.15, -0.4, 0.5, 0.2, 0.10, "two", width=0.06),
    FitRow("Kernels", "c", "every second size", 8, 4, 0.02, 0.05, -0.4, 1.0, 0.2, NONE, "three", width=0.3),
    FitRow("Kernels", "d", "not fitted", 0, 0, NONE, NONE, NONE, NONE, note="no curve"),
]


def test_coverage_and_half_width_of_every_row_and_of_the_section():
    lines = fits_markdown(ROWS).splitlines()
    (row,) = [line for line in lines if line.startswith("| a |")]
    assert "| 88 % | 12.0 % | 20.0 % | 10 %: met |" in row
    (head,) = [line for line in lines if line.startswith("| case ")]
    assert len({line.count("|") for line in lines if line.startswith("|")}) == 1
    assert "| in 90 % | half-width | two constants |" in head
    (summary,) = [line for line in lines if line.startswith("4 rows")]
    assert "16 points that were not fitted: mean error 7.5 %" in summary
    assert "81 % in their 90 % interval, whose half-width is 12.0 % in the median of the rows" in summary
    assert "1 of 2 goals met" in summary


def test_a_row_that_was_not_fitted_says_why():
    assert "| d | not fitted | 0 |  |  |  |  |  |  |  |  | no curve |" in fits_markdown(ROWS)
