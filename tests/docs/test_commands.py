"""The commands that the pages show work as they stand, one after the other, with the files of their page."""

import re
import shlex
from pathlib import Path

import pytest

from simperf.cli import main

ROOT = Path(__file__).parents[2]
#: a file that a page shows whole
FILE = re.compile(r"^```\{code-block\} \w+\n:caption: (\S+)\n\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PLAN = re.compile(r"^```toml\n(\[plan\]\n.*?)^```$", re.DOTALL | re.MULTILINE)
#: lines of a block of commands, or a line that is set off; what stands behind two blanks or a hash is a remark
SHOWN = re.compile(r"^```(?:sh)?\n(simperf .*?)^```$|^    (simperf [^\n]*)$", re.DOTALL | re.MULTILINE)
#: what takes minutes, a browser, torch, or somebody's files; `accuracy` and the map have tests of their own
ELSEWHERE = (
    *("lesson open", "trace", "zoo make", "accuracy", "zoo show net.json", "run scenario.toml"),
    *(
        "collective all-reduce --best",
        "collective all-reduce --topology star --ranks 64 --map",
        "limits d2l/async --crossover",
    ),
)
PAGES = ["README.md", "README.zh.md", "docs/explanation/collectives.md", "docs/reference/cli.md"]
PAGES += [
    path.relative_to(ROOT).as_posix()
    for folder in ("tutorials", "how-to")
    for path in (ROOT / "docs" / folder).glob("*.md")
]
#: pages whose commands take 20 to 60 s of processor time: searches, comparisons of the largest jobs
LONG = (
    *("docs/tutorials/failures.md", "docs/how-to/choose-a-layout.md"),
    *("docs/tutorials/which-layout.md", "docs/tutorials/nvl72.md"),
)


def commands(text):
    """The words of each command of a page."""
    found = []
    for block, line in SHOWN.findall(text):
        for shown in (block or line).replace("\\\n", " ").strip().splitlines():
            words = shlex.split(re.sub(r" {2,}[^-\s].*$", "", shown), comments=True)[1:]
            if words and not " ".join(words).startswith(ELSEWHERE):
                found.append(words)
    return found


TEXTS = {page: (ROOT / page).read_text("utf-8") for page in PAGES}
#: of each page what no page before it shows
COMMANDS: dict[str, list[list[str]]] = {}
for _page, _text in TEXTS.items():
    _before = [words for shown in COMMANDS.values() for words in shown]
    COMMANDS[_page] = [words for words in commands(_text) if words not in _before]


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.long if page in LONG else ()) for page, shown in COMMANDS.items() if shown],
)
def test_the_commands_of_a_page_work(page, tmp_path, monkeypatch, capsys, own_collectives):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SIMPERF_CACHE", str(tmp_path / "cache"))
    for name, text in [*FILE.findall(TEXTS[page]), *(("plan.toml", text) for text in PLAN.findall(TEXTS[page]))]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    for shown in COMMANDS[page]:
        # of `calibrate` what reads a file that the page shows, or has just made
        if shown[0] == "calibrate" and not (
            shown[1] in ("import", "fit") and all(map(Path.is_file, map(Path, shown[2:3])))
        ):
            continue
        words = ["serial" if word == "local" else word for word in shown]
        words += ["--pace", "0.2 s"] if "--live" in words else []
        assert main(words) == 0, (words, capsys.readouterr().err)


def test_what_is_set_off_is_found():
    text = "    simperf run a --set b='5 us'     a remark\n    simperf lesson open a\n"
    text += "```sh\nsimperf x \\\n  --y 3 # why\n```\n"
    assert commands(text) == [["run", "a", "--set", "b=5 us"], ["x", "--y", "3"]]
    assert sum(map(len, COMMANDS.values())) > 35
