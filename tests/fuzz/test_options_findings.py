"""Values of options and of Python that once ended in a traceback: each is told by its option and its key."""

import pytest

import simperf
from simperf.cli import main
from simperf.errors import InputError

NINES = "9" * 5000
DEEP = ("[" * 1000, "{a=" * 400, "[" * 100_000)


@pytest.fixture
def refused(capsys):
    """What is said of a command that is refused."""

    def run(*words):
        code = main(list(words))
        err = capsys.readouterr().err
        assert code == 2, err
        assert "defect" not in err, err
        assert "Error" not in err, err
        assert "int_max_str_digits" not in err, err
        assert max(map(len, err.splitlines())) < 1000
        return err

    return run


@pytest.mark.parametrize("value", DEEP, ids=["lists", "tables", "many lists"])
@pytest.mark.parametrize(
    "words", [("run", "--set"), ("sweep", "--vary"), ("limits", "--vary"), ("limits", "--crossover")]
)
def test_values_of_endless_nesting(refused, words, value):
    err = refused(words[0], "d2l/async", words[1], f"program.n={value}")
    assert err.startswith(f"error: {words[1]}: program.n: ")
    assert "depth of more than 64" in err


@pytest.mark.parametrize("words", [("run", "--set"), ("sweep", "--vary"), ("limits", "--vary")])
@pytest.mark.parametrize(
    "key", ["a" + ".a" * 4999, "a." * 80 + "a", f"machine.link[{NINES}].rate", "a" + " " * 50_000 + ".b"]
)
def test_keys_of_endless_length(refused, words, key):
    err = refused(words[0], "d2l/async", words[1], f"{key}=1")
    assert f"error: {words[1]}: " in err
    assert "is no key" in err or "a key has 64 at most" in err


@pytest.mark.parametrize(
    ("words", "value"),
    [
        (("run", "--set"), NINES),
        (("sweep", "--vary"), f"{NINES},2"),
        (("sweep", "--vary"), f"1..5:{NINES}"),
        (("limits", "--vary"), f"{NINES}..:3"),
        (("limits", "--vary"), f"1..{NINES}:3"),
        (("limits", "--vary"), f"1..{'9' * 190}e200:3"),
        (("limits", "--vary"), "-1e308..1e308:3"),
    ],
)
def test_numbers_of_thousands_of_digits(refused, words, value):
    err = refused(words[0], "d2l/async", words[1], f"program.n={value}")
    assert f"error: {words[1]}: " in err
    assert "program.n" in err


@pytest.mark.parametrize(
    ("option", "value"), [("-e", "9" * 400), ("-b", NINES), ("-e", "1e25GB"), ("-e", "1e99999999999999999999 GB")]
)
def test_sizes_that_no_memory_has(refused, option, value):
    err = refused("collective", "all-reduce", "--server", "dgx-a100", option, value, "-f", "10")
    assert err.startswith(f"error: {option}: ")
    assert "at most 1 EiB" in err or "finite number" in err


@pytest.mark.parametrize(
    ("words", "option"),
    [(("-f", "1.0000001"), "-f"), (("-i", "1"), "-i"), (("-b", "8", "-e", "1"), "-b")],
)
def test_sizes_that_are_too_many_name_their_option(refused, words, option):
    err = refused("collective", "all-reduce", "--server", "dgx-a100", *words)
    assert err.startswith(f"error: {option}: ")
    assert "expected: " in err


def _circle():
    made = {}
    made["a"] = made
    return made


def _list_in_itself():
    made = []
    made += [made, made]
    return made


@pytest.mark.parametrize("value", [_circle(), _list_in_itself()], ids=["table", "list"])
def test_values_of_python_that_hold_themselves(value):
    for call in (
        lambda: simperf.run("d2l/async", set={"program.n": value}),
        lambda: simperf.sweep("d2l/async", {"program.n": [value, 2]}),
        lambda: simperf.make_scenario({"program": {"use": "async-chain", "n": value}}),
    ):
        with pytest.raises(InputError, match="depth of more than 64"):
            call()


def test_keys_of_python_that_have_no_end():
    with pytest.raises(InputError, match="is no key"):
        simperf.run("d2l/async", set={"a." * 3000 + "a": 1})


@pytest.mark.parametrize("command", ["compare", "sweep"])
def test_speeds_that_are_no_numbers(command, capsys):
    """The error is told, or stands in the table."""
    code = main([command, "d2l/sync-160mb", "--vary", "speed.program.t1=" + "-" * 2000])
    said = capsys.readouterr()
    assert code == 2
    assert "speed.program.t1" in said.err + said.out
    assert "a number is expected" in said.err + said.out
    assert "ValueError" not in said.err + said.out


def test_draws_whose_number_has_no_end(refused):
    assert "'--samples'" in refused("compare", "d2l/sync-160mb", "--samples", "1" + "0" * 400)


def test_a_name_that_is_no_utf8_is_told_byte_by_byte(refused):
    assert refused("check", "\udcff\udc80").startswith("error: \\udcff\\udc80: no such file")


def test_a_named_machine_has_its_name_alone(refused, tmp_path):
    file = tmp_path / "s.toml"
    file.write_text('[program]\nuse = "async-chain"\n[machine]\nname = "dgx-1v"\nset = 3\n', "utf-8")
    assert "machine.set: unknown key beside the name of a machine\n    expected: the name alone" in refused(
        "run", str(file)
    )


def test_a_topology_that_there_is_not_names_its_option(refused):
    assert refused("collective", "broadcast", "--ranks", "4", "--topology", "x").startswith("error: --topology: ")
