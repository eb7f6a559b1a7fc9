"""Pictures of every kind of report page, for a phone and a desk, light and dark.

``python -m tests.report.screens FOLDER [KIND ...]`` writes the pages and their pictures below a folder.
"""

from __future__ import annotations

import base64
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from simperf.cli import main
from tests.report.browser import chromium, opened

__all__ = ["PAGES", "WIDTHS", "pictures", "write_pages"]

#: what makes each kind of page, but for ``--report FILE``; ``{plan}`` is a file of a plan
PAGES: Mapping[str, Sequence[str]] = {
    "run": ("run", "d2l/copy-overlap"),
    "frontend": ("run", "d2l/async", "--set", "program.n=2000"),
    "ddp": ("run", "training/overlap"),
    "servers": ("run", "training/async-staleness", "--set", "program.mode=asynchronous"),
    "large": ("run", "large/gpt3-175b-1024-a100"),
    "stages": ("run", "large/pipeline-of-four", "--variant", "1F1B"),
    "comparison": ("compare", "d2l/sync-160mb"),
    "comparison-rate": ("compare", "training/async-saturation"),
    "sweep": ("sweep", "training/overlap", "--vary", "program.gpus=2,4,8", "--no-cache"),
    "sweep-two": (
        "sweep",
        "d2l/async",
        "--vary",
        "program.t2=10 us,20 us,40 us",
        "--vary",
        "program.t1=5 us,20 us",
        "--no-cache",
    ),
    "plan": ("plan", "{plan}", "--no-cache"),
    "collective": ("collective", "all-reduce", "--server", "dgx-1v", "--algo", "all", "-b", "64K", "-e", "64M"),
    "collective-nccl": ("collective", "all-reduce", "--server", "dgx-a100", "-b", "64K", "-e", "256M"),
    "collective-ring": (
        "collective",
        "all-reduce",
        "--ranks",
        "4",
        "--topology",
        "ring",
        "--bandwidth",
        "1 GB/s",
        "--latency",
        "1 us",
        "-b",
        "1M",
        "-e",
        "4M",
        "-f",
        "2",
        "--algo",
        "all",
    ),
    "limits": ("limits", "training/overlap"),
}
PLAN = """
[plan]
title = "ResNet-18 on ImageNet"
model = "resnet18"
samples = 1281167
deadline = "10 h"
[candidates]
instances = ["p3-2xlarge", "p3-8xlarge", "p3-16xlarge"]
nodes = [1, 2]
batch_per_gpu = [32, 64]
"""
WIDTHS = (400, 1400)
#: pixels of a picture that a browser paints at once
_TALLEST = 16_000


def write_pages(folder: Path, kinds: Sequence[str] = ()) -> dict[str, Path]:
    """Write the page of each kind into a folder; gives the files by kind."""
    folder.mkdir(parents=True, exist_ok=True)
    plan = folder / "plan.toml"
    plan.write_text(PLAN, "utf-8")
    written = {}
    for kind in kinds or PAGES:
        path = folder / f"{kind}.html"
        words = [word.format(plan=plan) for word in PAGES[kind]]
        with redirect_stdout(StringIO()):
            code = main([*words, "--report", str(path)])
        if code or not path.exists():
            print(f"no page of {kind}: {' '.join(words)} ended with {code}", file=sys.stderr)
            continue
        written[kind] = path
    return written


def pictures(pages: Mapping[str, Path], folder: Path) -> list[Path]:
    """Write a picture of each page in each width, light and dark; gives the files."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for width in WIDTHS:
        for dark in (False, True):
            with chromium(width=width, dark=dark) as browser:
                for kind, page in pages.items():
                    path = folder / f"{kind}-{width}-{'dark' if dark else 'light'}.png"
                    opened(browser, page.resolve().as_uri())
                    path.write_bytes(whole(browser))
                    written.append(path)
    return written


def whole(browser: Any) -> bytes:
    """A PNG of the page in the browser from its head to its end."""
    width, height = browser.execute_script("return [innerWidth, document.documentElement.scrollHeight]")
    size = {"width": width, "height": min(height, _TALLEST), "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)  # what is never in view may not be painted
    given = {"format": "png", "captureBeyondViewport": True}
    return base64.b64decode(browser.execute_cdp_cmd("Page.captureScreenshot", given)["data"])


def _main(words: Sequence[str]) -> int:
    if not words or not set(words[1:]) <= set(PAGES):
        print(f"usage: python -m tests.report.screens FOLDER [{' | '.join(PAGES)}] ...", file=sys.stderr)
        return 2
    folder = Path(words[0])
    for path in pictures(write_pages(folder / "pages", words[1:]), folder):
        print(path)
    return 0


if __name__ == "__main__":
    raise SystemExit(_main(sys.argv[1:]))
