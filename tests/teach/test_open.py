"""A lesson in a real browser: sliders move the picture, the language changes, nothing stays behind."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

from simperf.cli import main
from tests.report.browser import chromium


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def address():
    pytest.importorskip("marimo", reason="marimo is not installed")
    port = _free_port()
    words = ["lesson", "open", "asynchrony", "--headless", "--port", str(port)]
    code = f"import sys; from simperf.cli import main; sys.exit(main({words!r}))"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL, start_new_session=True) as process:
        url = f"http://127.0.0.1:{port}/"
        for _ in range(120):
            try:
                urllib.request.urlopen(url, timeout=1).close()
                break
            except OSError:
                time.sleep(0.25)
        yield url
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(20) in (0, 130)


def _wait(browser, condition, what):
    end = time.monotonic() + 40
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.2)
    raise AssertionError(f"{what}: {browser.find_element('tag name', 'body').text[:2000]}")


def test_the_picture_comes_and_follows_the_slider(address):
    from selenium.webdriver.common.keys import Keys

    with chromium() as browser:
        browser.get(address)

        def heading():
            return [found.text for found in browser.find_elements("css selector", "h2") if " ms" in found.text]

        def deep(selector):
            """Elements wherever they are, in the components' shadow roots too."""
            return browser.execute_script(
                "const found = []; const walk = root => { found.push(...root.querySelectorAll(arguments[0]));"
                "for (const e of root.querySelectorAll('*')) if (e.shadowRoot) walk(e.shadowRoot); };"
                "walk(document); return found;",
                selector,
            )

        def picture():
            return [found.get_attribute("src") for found in deep("img") if found.size["width"] > 300]

        _wait(browser, lambda: heading() == ["4.020 ms"], "the first result")
        _wait(browser, picture, "the picture")
        before = picture()
        thumbs = deep("[role=slider]")
        assert len(thumbs) == 3
        for _ in range(15):
            thumbs[0].send_keys(Keys.ARROW_RIGHT)
        _wait(browser, lambda: heading() == ["5.030 ms"], "the frontend became the slower one")
        _wait(browser, lambda: picture() and picture() != before, "the picture moved")
        severe = [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
        assert severe == []


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
