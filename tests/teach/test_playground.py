"""The playground: its address holds its state, each control changes the answer, and it fits a phone and a desk."""

import os
import re
import runpy
import statistics
import time
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from simperf.teach.playground import Address, Playground, playground_notebook
from tests.polling import wait_until
from tests.report.browser import complaints
from tests.teach.lesson_page import served

marimo = pytest.importorskip("marimo", reason="marimo is not installed")
_DEEP = """
const walk = (root, what) => [...root.querySelectorAll('*')].flatMap(
  e => [...(e.matches(what) ? [e] : []), ...(e.shadowRoot ? walk(e.shadowRoot, what) : [])]);
return walk(document, arguments[0]);"""
#: seconds from a move to a new headline, at most: a person sees it follow the slider
_MOST = 3.0


class Query(dict):
    """Parameters of an address, as marimo has them."""

    def set(self, name, value):
        self[name] = value


def test_an_address_restores_settings_and_ignores_what_has_no_meaning():
    settings = runpy.run_path(str(playground_notebook()))["settings"]
    query = Query(machine="dgx-h100", batch="64", gpus="3", model="../secret", tp="2")
    values = Address(query).read(settings)
    assert (values["machine"], values["batch"], values["tp"]) == ("dgx-h100", 64, 2)
    assert (values["gpus"], values["model"]) == (4, "ResNet-50")
    Address(query).keep({**values, "gpus": 8})
    assert Address(query).read(settings) == {**values, "gpus": 8}


def test_time_memory_limit_and_what_helps_are_those_of_the_public_verbs():
    import simperf

    notebook = runpy.run_path(str(playground_notebook()))
    outputs, names = notebook["app"].run()
    page = "".join(one.text for one in outputs if one is not None)
    result = simperf.train(
        "resnet50",
        on="dgx-1v",
        strategy=simperf.DDP(),
        layout=simperf.Layout(dp=4),
        precision="fp16",
        batch_per_gpu=32,
        set={"program.steps": 1},
    )
    assert names["result"].time == result.time
    assert simperf.format_quantity(result.metrics["time per step"].value, "s") in page
    limiting = simperf.limits(simperf.make_scenario(result.scenario), faster=2.0).limiting
    assert f"If <strong>{limiting.resource.name}</strong> were twice as fast" in page
    assert f"the job would be {100 * limiting.change:.1f} % faster" in page
    assert "of 16 GiB: fits" in page
    assert "90 % interval" in page


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_layout_of_a_traced_model_is_refused_in_words_of_the_page(language):
    page = Playground(language)
    assert page.indivisible({"strategy": "layout", "model": "BERT base"})
    assert not page.indivisible({"strategy": "layout", "model": "GPT, 4 layers"})
    assert not page.indivisible({"strategy": "DDP", "model": "BERT base"})
    assert "GPT, 4 layers" in page.text["large"]


@pytest.mark.parametrize(
    "change", [{"strategy": "layout", "model": "ResNet-50"}, {"strategy": "layout", "model": "GPT, 4 layers", "tp": 8}]
)
def test_what_cannot_be_played_is_said(change):
    given = {"machine": "dgx-1v", "model": "ResNet-50", "strategy": "DDP", "precision": "fp16"}
    given |= {"gpus": 4, "batch": 8, "tp": 1, "pp": 1} | change
    import simperf

    with pytest.raises(simperf.SimperfError):
        runpy.run_path(str(playground_notebook()))["play"](**given)


@pytest.fixture(scope="module")
def address(browser):
    with served(["-m", "marimo", "run", str(playground_notebook()), "--no-token", "--host", "127.0.0.1"]) as url:
        yield url


def _headline(browser):
    """The headline, the bars of memory and a refusal: what every control changes, and what comes before limits."""
    texts = browser.execute_script(
        "return [...[...document.querySelectorAll('h2')].slice(0, 1), ...document.querySelectorAll("
        "'marimo-callout-output'), ...[...document.querySelectorAll('.simperf-bars')].slice(0, 1)]"
        ".map(e => e.outerHTML)"
    )
    return re.sub(r"\bid=\S+", "", "".join(texts))


def _settled(browser, within=60):
    """The headline once nothing has come for two seconds."""
    end, seen, since = time.monotonic() + within, "", time.monotonic()
    while time.monotonic() < end:
        now = _headline(browser)
        if now != seen:
            seen, since = now, time.monotonic()
        elif time.monotonic() - since > 2.0:
            return now
        time.sleep(0.05)
    raise AssertionError("the page does not settle")


def _sliders(browser):
    return browser.execute_script(_DEEP, "[role=slider]")


def _menus(browser):
    return browser.execute_script(_DEEP, "select")


def _open(browser, url, width=1400):
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(url)
    wait_until(lambda: _headline(browser) and len(_menus(browser)) == 4, f"{url} shows a time", within=90)
    wait_until(lambda: browser.find_elements("css selector", ".simperf-bars"), "it shows memory and limits", within=90)


def _keep(browser, name, width):
    folder = os.environ.get("SIMPERF_SCREENSHOTS")
    if folder:
        import base64

        size = {"width": width, "height": 2200 if width < 600 else 1500, "deviceScaleFactor": 1, "mobile": width < 600}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        time.sleep(1)
        seen = browser.execute_cdp_cmd("Page.captureScreenshot", {})
        Path(folder, f"playground-{name}.png").write_bytes(base64.b64decode(seen["data"]))


@pytest.mark.long
def test_each_control_changes_the_answer_and_the_address(browser, address):
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import Select

    _open(browser, f"{address}?strategy=layout&model=GPT%2C+4+layers&machine=dgx-a100&batch=1&gpus=4&tp=1&pp=1")
    assert "GPT, 4 layers" in [Select(one).first_selected_option.text for one in _menus(browser)]
    taken = []
    for place in range(4):  # GPUs, batch, tp and pp of a layout
        before, began = _settled(browser), time.monotonic()
        _sliders(browser)[place].send_keys(Keys.ARROW_LEFT if place == 0 else Keys.ARROW_RIGHT)
        wait_until(lambda before=before: _headline(browser) != before, f"slider {place} changes nothing")
        taken.append(time.monotonic() - began)
        _sliders(browser)[place].send_keys(Keys.ARROW_RIGHT if place == 0 else Keys.ARROW_LEFT)
        wait_until(lambda before=before: _headline(browser) == before, f"slider {place} comes back", within=60)
    query = parse_qs(urlsplit(browser.current_url).query)
    assert query["strategy"] == ["layout"]
    for place, choice in ((2, "DDP"), (0, "dgx-h100"), (1, "ResNet-50"), (3, "fp32")):
        before = _settled(browser)
        Select(_menus(browser)[place]).select_by_visible_text(choice)
        wait_until(lambda before=before: _headline(browser) != before, f"{choice} changes nothing", within=60)
    query = parse_qs(urlsplit(browser.current_url).query)
    assert (query["model"], query["machine"], query["precision"]) == (["ResNet-50"], ["dgx-h100"], ["fp32"])
    print("seconds from a move to its answer:", [f"{one:.2f}" for one in taken])
    if os.getloadavg()[0] < (os.cpu_count() or 1):
        assert statistics.median(taken) < _MOST
    assert [entry for entry in complaints(browser) if "SEVERE" in entry] == []


@pytest.mark.parametrize("width", [400, 1400])
def test_it_is_chinese_by_its_address_and_fits(width, browser, address):
    _open(browser, f"{address}?language=zh&batch=16&machine=dgx-h100", width)
    body = browser.find_element("tag name", "body").text
    assert "试验台" in body
    assert "一步的时间" in body
    assert browser.execute_script("return document.documentElement.scrollWidth - innerWidth") <= 0
    _keep(browser, f"{width}-zh", width)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark(scheme, browser, address):
    features = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", features)
    _open(browser, address)
    filtered = "const it = document.querySelector('.simperf-picture svg'); return it && getComputedStyle(it).filter"
    turned = wait_until(lambda: browser.execute_script(filtered), "it shows a picture", within=90)
    _keep(browser, f"1400-{scheme}", 1400)
    assert ("invert" in turned) == (scheme == "dark")
