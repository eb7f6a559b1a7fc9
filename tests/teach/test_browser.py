"""Every lesson in a real browser, at two widths: a picture, controls that move it, Chinese, and a right answer."""

import importlib.util
import os
import re
from pathlib import Path

import pytest

from simperf.teach import find_lesson, lessons
from tests.polling import wait_until
from tests.report.browser import complaints
from tests.teach.lesson_page import LessonPage, own_controls, prediction, served

LESSONS = [find_lesson(name) for name in lessons()]
#: lessons that are opened in each run of the tests; the others are long
SHORT = ("asynchrony", "planner-cluster")
TORCH = importlib.util.find_spec("torch") is not None
CHINESE = re.compile(r"[\u4e00-\u9fff]")


@pytest.fixture(scope="module")
def address(browser):
    folder = LESSONS[0].notebook.parent
    with served(["-m", "marimo", "run", str(folder), "--no-token", "--host", "127.0.0.1"]) as url:
        yield url


def _resize(browser, width, *, height=900):
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def _keep(browser, name):
    """A screenshot of the whole page, for who wants to look at it: in the folder that SIMPERF_SCREENSHOTS names."""
    folder = os.environ.get("SIMPERF_SCREENSHOTS")
    if folder:
        import base64

        width = browser.execute_script("return innerWidth")
        _resize(browser, width, height=4500 if width < 600 else 2800)
        seen = browser.execute_cdp_cmd("Page.captureScreenshot", {})
        Path(folder, f"{name}.png").write_bytes(base64.b64decode(seen["data"]))
        _resize(browser, width)


@pytest.mark.parametrize(
    "lesson",
    [pytest.param(one, id=one.name, marks=() if one.name in SHORT else pytest.mark.long) for one in LESSONS],
)
def test_a_lesson_as_its_reader_has_it(lesson, browser, address):
    _resize(browser, 1400)
    page = LessonPage(browser, f"{address}?file={lesson.notebook.name}", prediction(lesson))
    assert lesson.text["en"].title in page.body()
    _keep(browser, f"{lesson.name}-1400")
    outside, smallest, excess = page.layout()
    assert (outside, excess) == ([], 0)
    assert smallest >= 8

    controls = page.controls()
    assert len(controls) == own_controls(lesson.notebook)
    for index in reversed(range(len(controls))):  # the first of them may switch others off
        control = page.controls()[index]
        if control.tag_name == "button" and control.get_attribute("role") != "switch" and not TORCH:
            continue  # "measure again" has nothing to measure
        before = page.settled()
        page.move(control)
        wait_until(lambda before=before: page.shown() != before, f"control {index} of {lesson.name} moves nothing")

    _resize(browser, 400)
    page.switch("简体中文")
    wait_until(lambda: lesson.text["zh"].title in page.body(), "the title is Chinese")
    wait_until(lambda: any(map(CHINESE.search, page.words())), "the picture is Chinese")
    outside, smallest, excess = page.layout()
    _keep(browser, f"{lesson.name}-400-zh")
    assert (outside, excess) == ([], 0)
    assert smallest >= 8

    for number, exercise in enumerate(lesson.exercises):
        page.answer(number, exercise.right(), choice=bool(exercise.values))
        wait_until(lambda one=exercise: one.words["zh"].explain in page.body(), f"answer {number + 1} is accepted")
    assert [entry for entry in complaints(browser) if "SEVERE" in entry] == []
    assert page.strangers(address) == []


def test_pictures_are_dark_where_the_reader_has_it_dark(browser, address):
    _resize(browser, 1400)
    found = []
    for scheme in ("light", "dark"):
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [_preferring(scheme)]})
        page = LessonPage(browser, f"{address}?file=asynchrony.py")
        colours = "return [getComputedStyle(arguments[0]).filter, getComputedStyle(document.body).backgroundColor]"
        found.append(browser.execute_script(colours, page.picture()))
    (bright, paper), (turned, night) = found
    assert bright == "none"
    assert "invert" in turned
    assert paper != night


def _preferring(scheme):
    return {"name": "prefers-color-scheme", "value": scheme}
