"""Reports in a real browser: no error, zoom by button and key, nothing too wide."""

import pytest

from simperf.engine.recorder import Span
from simperf.report.html import comparison_report, result_report, save_page
from simperf.results import Result
from simperf.run import run, run_variants
from simperf.scenario import load_scenario
from tests.report.browser import chromium, complaints, opened


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "overlap.html"
    scenario = load_scenario("d2l/copy-overlap")
    save_page(result_report(run(scenario), machine=scenario.machine, command="simperf run d2l/copy-overlap"), path)
    return path


@pytest.mark.parametrize(("width", "dark"), [(400, False), (1400, False), (1400, True)])
def test_opens_without_complaint_and_fits(report, width, dark):
    with chromium(width=width, dark=dark) as browser:
        opened(browser, report.as_uri())
        assert complaints(browser) == []
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        assert browser.find_element("css selector", "canvas").size["height"] > 60


def test_the_timeline_zooms_by_button_and_key(report):
    from selenium.webdriver.common.keys import Keys

    with chromium() as browser:
        opened(browser, report.as_uri())
        box = browser.find_element("id", "timeline-box")

        def shown():
            return float(box.get_attribute("data-from")), float(box.get_attribute("data-to"))

        whole = shown()
        pixels = "return document.querySelector('canvas').toDataURL()"
        picture = browser.execute_script(pixels)
        browser.find_element("css selector", '[data-action="in"]').click()
        half = shown()
        assert half[1] - half[0] == pytest.approx((whole[1] - whole[0]) / 2)
        assert browser.execute_script(pixels) != picture
        canvas = browser.find_element("css selector", "canvas")
        canvas.send_keys(Keys.ARROW_RIGHT)
        assert shown()[0] > half[0]
        canvas.send_keys("+")
        assert shown()[1] - shown()[0] == pytest.approx((whole[1] - whole[0]) / 4)
        canvas.send_keys("0")
        assert shown() == whole
        assert "Shown: 0 s to" in browser.find_element("id", "timeline-box-status").text
        assert complaints(browser) == []


def test_every_control_is_reached_by_the_keyboard(report):
    with chromium() as browser:
        opened(browser, report.as_uri())
        nameless = browser.execute_script(
            "return [...document.querySelectorAll('button, a, canvas, [role=img]')].filter("
            "e => !(e.getAttribute('aria-label') || e.textContent.trim())).length"
        )
        assert nameless == 0
        assert browser.execute_script("return document.querySelector('canvas').tabIndex") == 0


def test_a_hundred_thousand_spans_open(tmp_path):
    spans = tuple(
        Span("gpu0/stream0", f"kernel{i % 50}", i * 1e-5, i * 1e-5 + 9e-6, "compute" if i % 3 else "memory")
        for i in range(100_000)
    )
    path = tmp_path / "long.html"
    save_page(result_report(Result("long", 1.0, spans=spans)), path)
    assert path.stat().st_size < 2_000_000
    with chromium() as browser:
        opened(browser, path.as_uri())
        assert browser.execute_script("return document.querySelector('.timeline').dataset.to")
        assert "Of 100,000 spans" in browser.find_element("tag name", "main").text
        assert complaints(browser) == []


def test_a_comparison_opens(tmp_path):
    path = tmp_path / "compare.html"
    results = run_variants(load_scenario("d2l/sync-160mb"))
    save_page(comparison_report([attempt.result for attempt in results], title="d2l/sync-160mb"), path)
    with chromium(width=400) as browser:
        opened(browser, path.as_uri())
        assert complaints(browser) == []
        assert "15.00 ms" in browser.find_element("tag name", "main").text
