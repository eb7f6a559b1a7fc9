"""Reports of every kind in a real browser: phone and desk, light, dark and paper; contrast, keyboard, weight."""

import base64
from itertools import pairwise

import pytest

from simperf.cli import main
from tests.report.browser import chromium, complaints, opened
from tests.report.test_html_pages import ESCAPED

KINDS = {
    "frontend": ["run", "d2l/async", "--set", "program.n=2000"],
    "ddp": ["run", "training/overlap"],
    "servers": ["run", "training/async-staleness", "--set", "program.mode=asynchronous"],
    "collective": ["collective", "all-reduce", "--server", "dgx-1v", "--algo", "ring,tree", "-b", "1M", "-e", "64M"],
    "comparison": ["compare", "training/async-saturation"],
    "sweep": ["sweep", "training/overlap", "--vary", "program.gpus=2,4,8", "--no-cache"],
}
#: sections that each kind must have, by the end of their heading
SECTIONS = {
    "frontend": ("Where the time went", "Timeline", "What limits it", "Launch queue", "What was modelled", "Inputs"),
    "ddp": ("Timeline", "What limits it", "Scaling", "Topology", "Inputs"),
    "servers": ("Timeline", "Scaling", "Staleness", "Topology", "What was not modelled", "Inputs"),
    "collective": ("By size", "Scaling", "What limits it", "Topology", "What was not modelled", "Inputs"),
    "comparison": ("Side by side", "Scaling", "What was modelled", "Sources"),
    "sweep": ("Pictures", "Scaling", "Points", "Best point"),
}
#: the least contrast between each text of the page and what is behind it, and where
CONTRAST = """
const light = c => { const v = c.map(x => (x /= 255) <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
  return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]; };
const parse = s => (s.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number);
const behind = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor);
  if (c.length < 4 || c[3] > 0.99) return c; } return [255, 255, 255]; };
let least = [99, ""];
for (const e of document.querySelectorAll("body *")) {
  if (e.closest("svg, script, canvas") || !e.checkVisibility()) continue;
  if (![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())) continue;
  const a = light(parse(getComputedStyle(e).color)), b = light(behind(e));
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (ratio < least[0]) least = [ratio, e.tagName + " " + e.textContent.slice(0, 40)];
}
return least;
"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kinds")
    for kind, words in KINDS.items():
        assert main([*words, "--report", str(folder / f"{kind}.html")]) == 0
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_has_its_sections_and_is_light(pages, kind):
    text = (pages / f"{kind}.html").read_text("utf-8")
    for heading in SECTIONS[kind]:
        assert f">{heading}</h2>" in text, heading
    assert 'class="question"' in text
    assert 'class="answer"' in text
    assert "interval" in text
    assert "simperf " + KINDS[kind][0] in text or "How to reproduce it" in text
    assert ESCAPED.findall(text) == []
    assert len(text.encode()) < 2_000_000


@pytest.mark.parametrize(("width", "dark"), [(400, False), (400, True), (1400, False), (1400, True)])
def test_every_kind_fits_is_legible_and_complains_of_nothing(pages, width, dark):
    with chromium(width=width, dark=dark) as browser:
        for kind in KINDS:
            opened(browser, (pages / f"{kind}.html").as_uri())
            assert complaints(browser) == [], kind
            assert browser.execute_script("return document.documentElement.scrollWidth") <= width, kind
            least, where = browser.execute_script(CONTRAST)
            assert least >= 4.5, (kind, where)


def test_pictures_and_tables_have_words_and_headings_are_in_order(pages):
    with chromium() as browser:
        for kind in KINDS:
            opened(browser, (pages / f"{kind}.html").as_uri())
            bare = browser.execute_script(
                "return [...document.querySelectorAll('svg, canvas, .shares')].filter("
                "e => !(e.getAttribute('aria-label') || '').trim()).length"
                " + [...document.querySelectorAll('table')].filter(t => !t.caption).length"
            )
            assert bare == 0, kind
            levels = browser.execute_script("return [...document.querySelectorAll('h1,h2,h3')].map(h => +h.tagName[1])")
            assert levels[0] == 1
            assert levels.count(1) == 1
            assert all(b - a <= 1 for a, b in pairwise(levels)), kind


def test_the_keyboard_alone_reaches_and_zooms_the_timeline(pages):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    with chromium() as browser:
        opened(browser, (pages / "frontend.html").as_uri())
        for _ in range(60):
            ActionChains(browser).send_keys(Keys.TAB).perform()
            if browser.execute_script("return document.activeElement.tagName") == "CANVAS":
                break
        assert browser.execute_script("return document.activeElement.tagName") == "CANVAS"
        assert browser.execute_script("return getComputedStyle(document.activeElement).outlineStyle") != "none"
        box = browser.find_element("class name", "timeline")
        whole = float(box.get_attribute("data-to"))
        ActionChains(browser).send_keys("+").perform()
        assert float(box.get_attribute("data-to")) - float(box.get_attribute("data-from")) == pytest.approx(whole / 2)


def test_a_queue_s_lane_tells_its_length_under_the_pointer(pages):
    from selenium.webdriver.common.action_chains import ActionChains

    with chromium() as browser:
        opened(browser, (pages / "frontend.html").as_uri())
        canvas = browser.find_element("tag name", "canvas")
        rows = browser.execute_script("return JSON.parse(document.querySelector('.timeline script').textContent).rows")
        place = next(i for i, row in enumerate(rows) if "queue" in row["label"])
        assert rows[place]["top"] > 100
        browser.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", canvas)
        middle = canvas.size["height"] / 2
        ActionChains(browser).move_to_element_with_offset(canvas, 100, int(place * 22 + 11 - middle)).perform()
        tip = browser.find_element("class name", "tip").text
        assert "stream0 queue: " in tip
        assert "highest" in tip


def test_paper_shows_all_that_a_screen_folds_away(pages):
    with chromium() as browser:
        opened(browser, (pages / "ddp.html").as_uri())
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        shown = "return getComputedStyle(document.querySelector('{}')).display"
        assert browser.execute_script(shown.format(".timeline")) == "none"
        assert browser.execute_script(shown.format(".paper")) == "block"
        assert browser.execute_script("return document.querySelector('details table').checkVisibility()")
        assert browser.execute_script(
            "return document.querySelector('details table').getBoundingClientRect().height > 50"
        )
        least, where = browser.execute_script(CONTRAST)
        assert least >= 4.5, where
        printed = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": False})
        assert base64.b64decode(printed["data"]).startswith(b"%PDF")
