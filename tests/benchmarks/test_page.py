"""A report in a browser: a timeline of a hundred thousand spans, beside one of a hundred.

pytest tests/benchmarks/test_page.py --benchmark-enable --benchmark-columns=min,median

The goal is 3 s for the long one.
"""

import pytest

from simperf.engine.recorder import Span
from simperf.report.html import result_report, save_page
from simperf.results import Result
from tests.report.browser import chromium, opened


@pytest.mark.parametrize("count", [100, 100_000])
def test_a_timeline_opens(benchmark, tmp_path, count):
    spans = tuple(
        Span("gpu0/stream0", f"kernel{i % 50}", i * 1e-5, i * 1e-5 + 9e-6, "compute" if i % 3 else "memory")
        for i in range(count)
    )
    path = tmp_path / "timeline.html"
    save_page(result_report(Result("timeline", 1.0, spans=spans)), path)
    with chromium() as browser:

        def look():
            opened(browser, path.as_uri())
            return browser.execute_script("return document.querySelector('.timeline').dataset.to")

        assert benchmark.pedantic(look, rounds=3)
