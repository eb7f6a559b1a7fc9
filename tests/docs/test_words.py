"""User-visible text uses the field's words: docs, messages, help, docstrings, scenarios and lessons."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WORDS = tomllib.loads((Path(__file__).parent / "banned_words.toml").read_text("utf-8"))["word"]
#: code, links' targets, and lines of a docstring that name a parameter or show a call
CODE = re.compile(r"``[^`\n]*``|`[^`\n]+`|\]\([^)\s]*\)|https?://\S+|^\s*(?:>>>|\.\.\.) .*$|^\s*[\w, ]+ : .*$", re.M)
QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')


def markdown(path):
    """Lines of prose; blocks of code are left out."""
    code = False
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if line.lstrip().startswith("```"):
            code = not code
        elif not code and not line.startswith("    "):
            yield number, line


def python(path):
    """Docstrings, and strings of more than one word: messages, help, notes, names of metrics."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value.strip():
            yield node.lineno, node.value


def toml(path):
    """Strings of more than one word, and lines of longer ones."""
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if line.lstrip().startswith("#"):
            continue
        quoted = QUOTED.findall(line)
        yield from ((number, one) for one in (quoted or [line]) if " " in one.strip() and ("=" not in one or quoted))


TEXTS = {
    "docs": (markdown, [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "calibration").glob("*.md")]),
    "package": (python, (ROOT / "simperf").rglob("*.py")),
    "data": (toml, (ROOT / "simperf").rglob("*.toml")),
    "scenarios": (toml, (ROOT / "scenarios").rglob("*.toml")),
    "lessons": (toml, (ROOT / "docs" / "lessons").rglob("*.toml")),
    "notebooks": (python, (ROOT / "docs" / "lessons").rglob("*.py")),
}


def banned(text):
    """Each banned word of a text, with what to say instead."""
    text = CODE.sub(lambda found: "\n" * found[0].count("\n"), text)
    for word in WORDS:
        for found in re.finditer(word["pattern"], text, re.I | re.M):
            around = text[max(0, found.start() - 30) : found.end() + 30]
            if not ("except" in word and re.search(word["except"], around, re.I)):
                yield f"{found[0]!r}: say {word['say']!r} (...{' '.join(around.split())}...)"


@pytest.mark.parametrize("kind", TEXTS)
def test_no_text_has_a_banned_word(kind):
    how, paths = TEXTS[kind]
    paths = sorted(paths)
    assert paths
    hits = [
        f"{path.relative_to(ROOT)}:{line}: {one}" for path in paths for line, text in how(path) for one in banned(text)
    ]
    assert hits == [], "\n" + "\n".join(hits)


def test_a_banned_word_is_found_and_code_is_not():
    assert list(banned("the run is played again"))
    assert list(banned("Show the version and leave."))
    assert not list(banned("``wiring`` plays no part; see `--flip`"))
    assert not list(banned("    floor : float"))
