"""The built documentation in a real browser: equations without a network, no console error, nothing too wide."""

import shutil
from pathlib import Path

import pytest

from tests.report.browser import chromium, complaints, opened

PAGES = ("index", "tutorials/first-steps", "explanation/cost", "explanation/mechanisms", "reference/api", "accuracy")


@pytest.fixture
def html(built):
    if shutil.which("chromium") is None:
        pytest.skip("chromium is not installed")
    return built[0]


@pytest.mark.parametrize(
    ("width", "dark"), [(400, False), pytest.param(1400, False, marks=pytest.mark.long), (1400, True)]
)
def test_pages_open_without_complaint_and_fit(html, width, dark):
    with chromium(width=width, dark=dark) as browser:
        for page in PAGES:
            opened(browser, (html / f"{page}.html").as_uri())
            assert complaints(browser) == [], page
            assert browser.execute_script("return document.documentElement.scrollWidth") <= width, page


def test_equations_are_drawn_by_the_browser_itself(html):
    with chromium() as browser:
        opened(browser, (html / "explanation" / "cost.html").as_uri())
        formulas = browser.find_elements("css selector", "div.equation math")
        assert len(formulas) >= 2, browser.page_source[:2000]
        assert all(formula.size["height"] > 20 < formula.size["width"] for formula in formulas)
        assert "\\frac" not in browser.find_element("tag name", "main").text
        asked = browser.execute_script("return performance.getEntriesByType('resource').map(e => e.name)")
        assert [name for name in asked if not name.startswith("file:")] == []


def test_no_equation_is_cut_off_on_a_phone(html):
    with chromium(width=400) as browser:
        opened(browser, (html / "explanation" / "cost.html").as_uri())
        cut = browser.execute_script(
            "return [...document.querySelectorAll('div.equation')].filter(box => {"
            " const outer = box.getBoundingClientRect(), inner = box.firstElementChild.getBoundingClientRect();"
            " const room = inner.width <= outer.width + 1 || box.scrollWidth >= inner.width;"
            " return inner.left < outer.left - 1 || inner.bottom > outer.bottom + 1 || !room; }).length"
        )
        assert cut == 0


def test_no_page_asks_the_network_for_anything(html):
    import re

    outside = re.compile(r'<(?:script|img|iframe|link)\b[^>]*(?:src|href)="(https?:[^"]*)"')
    for page in html.rglob("*.html"):
        assert outside.findall(page.read_text("utf-8")) == [], page.relative_to(html)


def test_search_finds_a_page_by_a_word(html):
    assert (html / "searchindex.js").stat().st_size > 10_000
    assert Path(__file__).parents[2].joinpath("docs", "index.md").exists()
