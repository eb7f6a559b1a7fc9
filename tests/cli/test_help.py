"""Help: by task, with an example of each command that its parser understands, legible at any width."""

import re
import shlex

import pytest

from simperf.cli.app import command
from simperf.cli.help import EXAMPLES, TASKS

ROOT = command()
COMMANDS = [
    *(name for name, one in ROOT.commands.items() if not hasattr(one, "commands")),
    *(f"{name} {sub}" for name, one in ROOT.commands.items() for sub in getattr(one, "commands", {})),
]
GROUPS = ["", *(name for name, one in ROOT.commands.items() if hasattr(one, "commands"))]


def shown(simperf, words, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    code, out, err = simperf(*words.split(), "--help")
    assert (code, err) == (0, "")
    return out


def test_each_command_stands_below_one_task(simperf):
    named = [name for names in TASKS.values() for name in names]
    assert sorted(named) == sorted(ROOT.commands)
    out = simperf("--help")[1]
    titles = re.findall(r"^(\S.*):$", out, re.M)
    assert titles == ["Options", *TASKS]
    assert "Show the version and exit." in out


@pytest.mark.parametrize("words", COMMANDS)
def test_each_command_has_an_example_that_its_parser_takes(words):
    example = shlex.split(EXAMPLES[words])
    names = words.split()
    assert example[: len(names)] == names
    one = ROOT
    for name in names:
        one = one.commands[name]
    one.make_context(names[-1], example[len(names) :])  # raises what the parser does not understand


def test_there_is_no_example_of_nothing():
    assert set(EXAMPLES) == set(COMMANDS)


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("words", [*GROUPS, *COMMANDS])
def test_help_breaks_no_word_and_is_no_wider_than_the_terminal(simperf, monkeypatch, words, width):
    out = shown(simperf, words, monkeypatch, width)
    whole = set(shown(simperf, words, monkeypatch, 1000).split())
    assert not set(out.split()) - whole
    longest = max(map(len, whole))
    assert max(map(len, out.splitlines())) <= max(width, longest + 6)


def test_panels_of_options_stand_below_their_titles(simperf):
    out = simperf("collective", "--help")[1]
    assert re.findall(r"^(\S.*):$", out, re.M)[1:] == [
        *("Machine", "Options of the idealised algorithms", "Options of NCCL", "Output", "Options", "Example"),
    ]
    assert "9223372036854775807" not in simperf("run", "--help")[1]


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("run d2l/asy", {"d2l/async"}),
        ("topo dgx-1", {"dgx-1v"}),
        ("collective all-r", {"all-reduce"}),
        ("schema sce", {"scenario"}),
        ("zoo show resnet5", {"resnet50"}),
        ("programs async-", {"async-chain"}),
        ("lesson open ", {"playground", "regimes"}),
        ("compare d2l/ring-8", {"d2l/ring-8-v100"}),
        ("catalog show h100-sxm5", {"h100-sxm5-80gb"}),
        ("run --plot-kind gan", {"gantt"}),
        ("swe", {"sweep"}),
        ("init pl", {"plan"}),
    ],
)
def test_a_shell_completes_names(simperf, monkeypatch, typed, offered):
    words = ["simperf", *typed.split(" ")]
    monkeypatch.setenv("_SIMPERF_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", " ".join(words))
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    code, out, err = simperf()
    assert (code, err) == (0, "")
    found = set(out.split())
    assert found >= offered
    assert not words[-1] or all(one.startswith(words[-1]) for one in found)
    assert found


def test_completion_can_be_shown(simperf, monkeypatch):
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    code, out, _ = simperf("--show-completion", "bash")
    assert code == 0
    assert "_SIMPERF_COMPLETE=complete_bash" in out


def test_an_error_repeats_the_line_of_the_help(simperf):
    line = simperf("init", "--help")[1].splitlines()[0]
    assert line == "Usage: simperf init [OPTIONS] KIND [FILE]"
    code, out, err = simperf("init", "nothing")
    assert (code, out) == (2, "")
    assert line in err.splitlines()
