"""`simperf lesson`: what it lists, opens and writes; an opened lesson ends with its command."""

import re
import urllib.request
from html import escape

import pytest

from simperf.cli import main
from simperf.teach import find_lesson
from tests.polling import wait_until
from tests.report.browser import chromium, complaints, opened
from tests.teach.lesson_page import LessonPage, served


def test_the_frontend_becomes_the_slower_one():
    keys = pytest.importorskip("selenium.webdriver.common.keys", reason="selenium is not installed").Keys
    code = "import sys; from simperf.cli import main; sys.exit(main(sys.argv[1:]))"
    with chromium() as browser, served(["-c", code, "lesson", "open", "asynchrony"]) as address:
        page = LessonPage(browser, address)
        assert page.headline() == "Time of all operations: 4.020 ms"
        before = page.shown()
        launch = page.controls()[0]
        for _ in range(15):
            launch.send_keys(keys.ARROW_RIGHT)
        wait_until(lambda: page.headline() == "Time of all operations: 5.030 ms", "n t1 + t2 + t3 with t1 = 25 us")
        assert page.shown() != before


def test_a_lesson_is_shown_to_those_alone_who_have_its_token():
    """Any user of the computer reaches its ports."""
    code = "import sys; from simperf.cli import main; sys.exit(main(sys.argv[1:]))"
    with served(["-c", code, "lesson", "open", "asynchrony"]) as address:
        bare, query, token = address.partition("?access_token=")
        assert query
        assert len(token) > 12
        for url, shown in ((bare, False), (f"{bare}{query}1", False), (address, True)):
            cookies = urllib.request.HTTPCookieProcessor()
            with urllib.request.build_opener(cookies).open(url, timeout=20) as page:
                assert ("/auth/login" not in page.geturl()) == shown


def test_list_and_unknown_names(capsys):
    assert main(["lesson", "list"]) == 0
    assert "asynchrony" in capsys.readouterr().out
    assert main(["lesson", "list", "--language", "zh", "--format", "csv"]) == 0
    assert "异步" in capsys.readouterr().out
    assert main(["lesson", "open", "asynchrnoy"]) == 2
    assert "asynchrony" in capsys.readouterr().err


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", ["asynchrony", "reality"])
def test_an_exported_page_stands_alone(name, language, tmp_path):
    pytest.importorskip("marimo", reason="marimo is not installed")
    target = tmp_path / "lesson.html"
    assert main(["lesson", "export", name, str(target), "--language", language]) == 0
    text, lesson = target.read_text("utf-8"), find_lesson(name)
    assert not re.search(r'(?<!href=")https?://(?!www\.w3\.org/)|<script|<marimo-|<link', text)
    for exercise in lesson.exercises:
        words = exercise.words[language]
        assert all(escape(part) in text for part in (words.text, words.explain, exercise.right()))
    with chromium(width=400) as browser:
        opened(browser, target.as_uri())
        assert complaints(browser) == []
        body = browser.find_element("tag name", "body").text
        assert all(lesson.text[language].title in part for part in (body, browser.title))
        assert len(browser.find_elements("css selector", "details:not([open])")) == len(lesson.exercises)
        picture = browser.find_element("css selector", ".simperf-narrow svg")
        assert 300 < picture.size["width"] <= 400
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 400
