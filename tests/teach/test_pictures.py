"""Curves of lessons: what is drawn is what was given."""

import functools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from simperf.teach.pictures import draw_curves, picture


def test_lines_marks_and_the_readers_choice():
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    curves = {"NVLink": [(1, 3.0), (10, 20.0)], "PCIe": [(1, 1.0), (10, 6.0)]}
    (axes,) = draw_curves(curves, x="size (kB)", y="rate (GB/s)", here=(10, 6.0), marks={"Young": 5.0}).axes
    drawn = {line.get_label(): list(line.get_xydata().ravel()) for line in axes.get_lines()}
    assert drawn["NVLink"] == [1, 3.0, 10, 20.0]
    assert drawn["Young"][::2] == [5.0, 5.0]
    assert drawn["the sliders' choice"] == [10, 6.0]
    assert axes.get_xlabel() == "size (kB)"
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")


def test_a_linear_axis_starts_at_zero():
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    (axes,) = draw_curves({"goodput": [(1, 80.0), (2, 90.0)]}, x="min", y="%", log="x").axes
    assert axes.get_yscale() == "linear"
    assert axes.get_ylim()[0] == 0


def test_a_picture_of_a_page_is_there_for_two_widths_in_the_readers_language():
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    curves = {"simulated": [(1, 80.0), (2, 90.0)]}
    draw = functools.partial(draw_curves, curves, x="training between two checkpoints of a job (min)", y="goodput (%)")
    html = picture(draw, "zh", name="it", text="what is seen", words={"goodput (%)": "有效吞吐（%）"})
    drawings = [float(width) for width in re.findall(r'<svg [^>]*viewBox="0 0 ([\d.]+) ', html)]
    assert drawings == pytest.approx([8.0 * 72, 4.2 * 72])
    assert html.count("有效吞吐（%）") == html.count("模拟") == 2
    assert html.count('lang="zh"') == html.count('aria-label="what is seen"') == 2
    names = re.findall(r'\bid="([^"]+)"', html)
    assert len(names) == len(set(names))
    assert len(re.findall(r">training between two[^<]*<", html)) == 2  # on a phone in two lines
    assert "checkpoints of a job (min)<" in html


#: processes that end while a daemon thread draws, as the thread of a lesson's page does; prints how they ended
ENDED = """
import os, sys, threading, time
from simperf.teach.pictures import draw_curves, picture

def draw():
    return draw_curves({"a curve": [(1, 80.0), (2, 90.0)]}, x="size", y="rate")

def page():
    while True:
        picture(draw, "en", name="it", text="", words={})

picture(draw, "en", name="it", text="", words={})
for number in range(12):
    child = os.fork()
    if not child:
        threading.Thread(target=page, daemon=True).start()
        time.sleep(0.1 + 0.02 * number)
        sys.exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)  # or the next child prints it, too
"""


@pytest.mark.skipif(os.name == "nt", reason="processes of POSIX")
def test_a_process_that_ends_while_a_page_draws_does_not_abort():
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", ENDED], capture_output=True, text=True, check=False, env=environment)
    assert (done.stdout.split(), done.stderr) == (["0"] * 12, "")
