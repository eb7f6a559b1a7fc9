"""What every command prints is legible at 80 and 120 columns: no line is wider, no word is broken, nothing is cut."""

import pytest

from tests.cli.screens import DATA, SCREENS, WIDTHS, prepare, shown

#: columns at which nothing folds
_WIDE = 4000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the files that the commands read."""
    made = tmp_path_factory.mktemp("screens")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        patch.setenv("SIMPERF_CACHE", "off")
        prepare(made)
    return made


@pytest.mark.parametrize("name", SCREENS)
def test_no_line_is_too_wide_and_no_word_is_broken(folder, monkeypatch, name):
    monkeypatch.chdir(folder)
    code, wide, said = shown(SCREENS[name], _WIDE)
    assert code == (2 if name.startswith("error-") else 0), said
    words = set(wide.split())
    longest = max(map(len, words), default=0)
    for width in () if name in DATA else WIDTHS:
        out = shown(SCREENS[name], width)[1]
        assert max(map(len, out.splitlines()), default=0) <= max(width, longest + 4), width
        broken = [word for word in out.split() if _is_part(word, words, out)]
        assert not broken, width
        assert "…" not in out


def _is_part(word, words, out):
    """Whether a word is the beginning of a longer one whose rest stands elsewhere."""
    if word in words or word.rstrip(":;,") in words:
        return False
    rests = [one[len(word) :] for one in words if one.startswith(word)]
    return any(rest in out.split() and len(rest) > 1 for rest in rests)


def test_a_broken_word_is_found():
    assert _is_part("aiconf", {"aiconfigurator"}, "aiconf\nigurator")
    assert not _is_part("name:", {"name"}, "name: x")


@pytest.mark.parametrize("name", ["run", "run-links", "run-large"])
def test_a_run_is_one_screen(folder, monkeypatch, name):
    monkeypatch.chdir(folder)
    out = shown(SCREENS[name], 80)[1]
    assert 15 <= len(out.splitlines()) <= 40
    for title in ("Where the time went", "What limits it", "90 % interval", "--verbose adds"):
        assert title in out
