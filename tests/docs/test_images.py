"""The pictures of the README and the docs are what the command in the repository draws."""

import re
import shlex
from pathlib import Path

import pytest

from simperf.cli import main

ROOT = Path(__file__).parents[2]
IMAGES = sorted((ROOT / "docs" / "images").glob("*"))
SCRIPT = (ROOT / "docs" / "make_images.sh").read_text("utf-8")
COMMANDS = re.findall(r"^(simperf .*--plot (docs/images/\S+)) ", SCRIPT, re.MULTILINE)
SHOWN = re.compile(r"!\[[^\]]+\]\(([^)\s]+)\)")


def head(path):
    """Size of a picture."""
    found = re.search(r'<svg[^>]*width="([\d.]+pt)" height="([\d.]+pt)"', path.read_text("utf-8"))
    return found[1], found[2]


def test_every_picture_is_made_by_the_command_and_shown_somewhere():
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    shown = {(page.parent / target).resolve() for page in pages for target in SHOWN.findall(page.read_text("utf-8"))}
    for image in IMAGES:
        assert f"docs/images/{image.name}" in SCRIPT
        assert image in shown, image.name


@pytest.mark.parametrize(("command", "target"), COMMANDS, ids=[target for _, target in COMMANDS])
def test_what_is_shown_is_what_the_command_draws(command, target, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs" / "images").mkdir(parents=True)
    assert main(shlex.split(command)[1:]) == 0
    assert head(tmp_path / target) == head(ROOT / target), "docs/make_images.sh draws it again"
