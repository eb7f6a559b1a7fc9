"""A real headless Chromium for tests of pages; tests skip where there is none."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

_QUIET = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --hide-scrollbars"
)

#: what the browser is called on different systems
_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


@contextmanager
def chromium(*, width: int = 1400, height: int = 900, dark: bool = False) -> Iterator[Any]:
    """A browser of that size; the test is skipped without chromium, chromedriver or selenium."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    binary = next(filter(None, map(shutil.which, _NAMES)), None)
    driver = shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip("chromium and chromedriver are not on PATH (Debian: apt-get install chromium chromium-driver)")
    options = Options()
    options.binary_location = binary
    for word in _QUIET.split():
        options.add_argument(word)
    options.add_argument(f"--window-size={width},{height}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(driver))
    try:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        yield browser
    finally:
        browser.quit()


def opened(browser: Any, url: str) -> None:
    """Open a page and wait until all of it is there; a driver may return before the old page is left."""
    from selenium.webdriver.support.ui import WebDriverWait

    browser.get(url)
    there = "return document.readyState === 'complete' && location.href === arguments[0] && !!document.body"
    WebDriverWait(browser, 60).until(lambda one: one.execute_script(there, url), f"{url} was not opened within 60 s")


def complaints(browser: Any) -> list[str]:
    """What the page wrote to its console as errors or warnings, so far."""
    return [json.dumps(entry) for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
