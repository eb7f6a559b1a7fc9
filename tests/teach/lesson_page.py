"""A lesson as a reader has it: open in a browser, with its controls, its picture, its language and its answers."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import contextmanager

import pytest

from tests.polling import wait_until

#: elements wherever they are, in the components' shadow roots too, in the order of the page
_WALK = """
const walk = (root, what) => [...root.querySelectorAll('*')].flatMap(
  e => [...(e.matches(what) ? [e] : []), ...(e.shadowRoot ? walk(e.shadowRoot, what) : [])]);"""
_DEEP = _WALK + "return walk(document, arguments[0]);"
_CONTROLS = (
    _WALK
    + """
const picture = document.querySelector('.simperf-picture');
return [...document.querySelectorAll('marimo-slider, marimo-dropdown, marimo-switch, marimo-button')]
  .filter(e => e.compareDocumentPosition(picture) & Node.DOCUMENT_POSITION_FOLLOWING)
  .filter(e => e !== document.querySelector('marimo-text, marimo-dropdown'))
  .flatMap(e => walk(e.shadowRoot || e, '[role=slider], select, button'));"""
)
#: the field that asks for a prediction, which is the first of the page
_FIRST = (
    _WALK
    + """
const first = document.querySelector('marimo-text, marimo-dropdown');
return first ? walk(first.shadowRoot || first, 'input, select') : [];"""
)
#: fields of the exercises, which stand after the pictures
_FIELDS = (
    _WALK
    + """
const pictures = [...document.querySelectorAll('.simperf-picture')], last = pictures[pictures.length - 1];
return [...document.querySelectorAll('marimo-text, marimo-dropdown')]
  .filter(e => last.compareDocumentPosition(e) & Node.DOCUMENT_POSITION_FOLLOWING)
  .flatMap(e => walk(e.shadowRoot || e, 'input, select'));"""
)
_PICTURE = """
return [...document.querySelectorAll('.simperf-picture svg')].filter(e => e.getBoundingClientRect().width > 0)"""
_SHOWN = """
let sum = 0;
for (const e of document.querySelectorAll('h2, .simperf-wide svg, table, marimo-callout-output'))
  for (const letter of e.outerHTML) sum = (sum * 31 + letter.codePointAt(0)) | 0;
return sum;"""
#: texts that leave the picture they stand in, and the smallest height of a letter on the screen [px]
_LAYOUT = """
const picture = arguments[0], edge = picture.getBoundingClientRect(), out = [];
let smallest = 1e9;
const shrunk = edge.width / picture.viewBox.baseVal.width;
for (const text of picture.querySelectorAll('text')) {
  const box = text.getBoundingClientRect();
  if (box.left < edge.left - 2 || box.right > edge.right + 2 || box.top < edge.top - 2 || box.bottom > edge.bottom + 2)
    out.push(text.textContent);
  smallest = Math.min(smallest, parseFloat(getComputedStyle(text).fontSize) * shrunk);
}
return [out, smallest];"""


@contextmanager
def served(words, *, python=sys.executable):
    """The address at which a command serves lessons; the command is ended by an interrupt, as from the keyboard."""
    pytest.importorskip("marimo", reason="marimo is not installed")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(python), *words, "--headless", "--port", str(port)]
    with (
        tempfile.TemporaryFile("w+") as told,
        subprocess.Popen(command, stdout=told, start_new_session=True) as process,
    ):

        def address():
            told.seek(0)
            found = re.search(rf"URL: http://(?:localhost|127\.0\.0\.1):{port}(\S*)", told.read())
            return found and f"http://127.0.0.1:{port}/{found.group(1).lstrip('/')}"

        try:
            url = wait_until(address, f"{command} tells its address", within=60)
            wait_until(lambda: _answers(url), f"{command} serves", within=60)
            yield url
        finally:
            os.killpg(process.pid, signal.SIGINT)
            code = process.wait(60)
        assert code in (0, 130)


def _answers(url):
    try:
        urllib.request.urlopen(url, timeout=5).close()
    except OSError:
        return False
    return True


class LessonPage:
    """The page of one lesson, after a prediction: before it there is no picture."""

    def __init__(self, browser, url, prediction="5 ms"):
        self.browser = browser
        browser.get(url)
        self.predict(prediction)
        wait_until(lambda: self.picture() and self.headline(), f"{url} has a picture")

    def predict(self, prediction):
        """Write or choose a prediction in the field that asks for it."""
        from selenium.webdriver.common.keys import Keys
        from selenium.webdriver.support.ui import Select

        def field():
            return next(iter(self.browser.execute_script(_FIRST)), None)

        found = wait_until(field, "there is a field for a prediction")
        assert self.picture() is None
        if found.tag_name == "select":
            Select(found).select_by_visible_text(prediction)
        else:
            found.send_keys(prediction, Keys.ENTER)

    def deep(self, selector):
        return self.browser.execute_script(_DEEP, selector)

    def picture(self):
        """The picture that is seen, of the two that are there for pages of different width."""
        return next(iter(self.browser.execute_script(_PICTURE)), None)

    def headline(self):
        found = [each.text for each in self.browser.find_elements("css selector", "h2")]
        return found[0] if found else ""

    def shown(self):
        """A sum over all that can change: headline, picture, tables and warnings."""
        return self.browser.execute_script(_SHOWN)

    def settled(self):
        """What is shown as soon as it stays the same for a while."""
        before, since = self.shown(), time.monotonic()
        while time.monotonic() - since < 0.2:
            time.sleep(0.05)
            now = self.shown()
            if now != before:
                before, since = now, time.monotonic()
        return before

    def words(self):
        """What is written in the picture."""
        script = "return [...arguments[0].querySelectorAll('text')].map(e => e.textContent)"
        return self.browser.execute_script(script, self.picture())

    def layout(self):
        """Texts that leave the picture, the least height of letters [px], and by how much the page is too wide [px]."""
        outside, smallest = self.browser.execute_script(_LAYOUT, self.picture())
        excess = self.browser.execute_script("return document.documentElement.scrollWidth - innerWidth")
        return outside, smallest, excess

    def controls(self):
        """Sliders, choices, switches and buttons that stand before the picture, and so are none of an exercise's."""
        wait_until(self.picture, "there is a picture")  # not while it is drawn anew
        return self.browser.execute_script(_CONTROLS)

    def move(self, control):
        """Move a control by one step, to wherever there is room."""
        from selenium.webdriver.common.keys import Keys
        from selenium.webdriver.support.ui import Select

        if control.get_attribute("role") == "slider":
            at_end = control.get_attribute("aria-valuenow") == control.get_attribute("aria-valuemax")
            control.send_keys(Keys.ARROW_LEFT if at_end else Keys.ARROW_RIGHT)
        elif control.tag_name == "select":
            choices = Select(control)
            names = [each.text for each in choices.options]
            choices.select_by_index((names.index(choices.first_selected_option.text) + 1) % len(names))
        else:
            control.click()

    def switch(self, language):
        (label,) = (each for each in self.deep("label") if each.text.strip() == language)
        self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'}); arguments[0].click()", label)

    def answer(self, number, text, *, choice=False):
        """Type or choose an answer in the field of an exercise, counted from 0."""
        from selenium.webdriver.common.keys import Keys
        from selenium.webdriver.support.ui import Select

        field = self.browser.execute_script(_FIELDS)[number]
        if choice:
            Select(field).select_by_visible_text(text)
        else:
            field.send_keys(text, Keys.TAB)

    def strangers(self, address):
        """What the page asked others for than who serves it."""
        entries = "return performance.getEntriesByType('resource').map(entry => entry.name)"
        return [
            name for name in self.browser.execute_script(entries) if not name.startswith((address, "data:", "blob:"))
        ]

    def body(self):
        return self.browser.find_element("tag name", "body").text


def own_controls(notebook):
    """How many settings a notebook has, and buttons."""
    return len(re.findall(r" (?:Slider|Menu|Switch)\(|mo\.ui\.button\(", notebook.read_text("utf-8")))


#: a prediction in each unit
PREDICTIONS = {"s": "5 ms", "B": "20 GB", "1": "2x", "%": "50 %", "USD": "300 USD"}


def prediction(lesson):
    """What is predicted in a lesson, right or wrong."""
    return lesson.outcome.values[0] if lesson.outcome.values else PREDICTIONS[lesson.outcome.unit]
