"""`simperf lesson`: what it lists, opens and writes; an opened lesson ends with its command."""

import pytest

from simperf.cli import main
from tests.report.browser import chromium
from tests.teach.lesson_page import LessonPage, served, wait


def test_the_frontend_becomes_the_slower_one():
    keys = pytest.importorskip("selenium.webdriver.common.keys", reason="selenium is not installed").Keys
    code = "import sys; from simperf.cli import main; sys.exit(main(sys.argv[1:]))"
    with chromium() as browser, served(["-c", code, "lesson", "open", "asynchrony"]) as address:
        page = LessonPage(browser, address)
        assert page.headline() == "4.020 ms"
        before = page.shown()
        launch = page.controls()[0]
        for _ in range(15):
            launch.send_keys(keys.ARROW_RIGHT)
        wait(lambda: page.headline() == "5.030 ms", "n t1 + t2 + t3 with t1 = 25 us")
        assert page.shown() != before


def test_list_and_unknown_names(capsys):
    assert main(["lesson", "list"]) == 0
    assert "asynchrony" in capsys.readouterr().out
    assert main(["lesson", "list", "--language", "zh", "--format", "csv"]) == 0
    assert "异步" in capsys.readouterr().out
    assert main(["lesson", "open", "asynchrnoy"]) == 2
    assert "asynchrony" in capsys.readouterr().err


def test_export_writes_a_page(tmp_path):
    pytest.importorskip("marimo", reason="marimo is not installed")
    target = tmp_path / "lesson.html"
    assert main(["lesson", "export", "asynchrony", str(target)]) == 0
    assert "4.020 ms" in target.read_text("utf-8")
