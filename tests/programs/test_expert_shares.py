"""Loads of experts from a file beside the scenario."""

import pytest
import tomli_w

import simperf
from simperf.cli import main
from simperf.errors import InputError
from simperf.programs.expert_shares import read_shares

MODEL = {
    **{"layers": 2, "hidden": 256, "heads": 8, "vocabulary": 1024, "sequence": 128, "ffn": 512},
    **{"experts": 4, "experts_per_token": 2, "expert_ffn": 512},
}
PROGRAM = {
    **{"use": "train", "strategy": "model-parallel", "stack": "megatron-core", "precision": "bf16-master"},
    **{"batch": 16, "microbatch": 1, "steps": 1},
}
SHARES = [[5.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0]]


@pytest.fixture
def scenario(tmp_path, monkeypatch):
    """Writes a scenario of four experts over four ranks, and gives its path."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs").mkdir()

    def write(**program):
        tree = {"machine": {"use": "dgx-a100"}, "model": MODEL, "layout": {"dp": 4, "ep": 4}}
        path = tmp_path / "jobs" / "s.toml"
        path.write_text(tomli_w.dumps(tree | {"program": PROGRAM | program}))
        return path

    return write


@pytest.mark.parametrize("draws", [1, 2])
def test_a_file_of_shares_is_as_the_shares_themselves(scenario, draws):
    rows = SHARES[:draws]
    path = scenario(expert_shares=[share for row in rows for share in row])
    given = simperf.run(simperf.load_scenario(path)).time
    (path.parent / "shares.csv").write_text("\n".join(",".join(map(str, row)) for row in rows) + "\n\n")
    path = scenario(expert_shares_file="shares.csv")
    assert simperf.run(simperf.load_scenario(path)).time == given
    even = simperf.run(simperf.load_scenario(scenario())).time
    assert given > even


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("1,2,3,4\n1,2,3\n", 2, "the line has 3 numbers, those before it 4"),
        ("1,2,x,4\n", 1, "a number of 0 or more"),
        ("1,2,-3,4\n", 1, "a number of 0 or more"),
        ("1,2,inf,4\n", 1, "a number of 0 or more"),
        ("\n\n", 0, "the file is empty"),
    ],
)
def test_a_wrong_line_is_named(tmp_path, text, line, words):
    path = tmp_path / "shares.csv"
    path.write_text(text)
    with pytest.raises(InputError) as found:
        read_shares(path)
    assert words in str(found.value)
    assert found.value.problems[0].line == line


def test_what_cannot_be_is_refused_with_exit_code_2(scenario, capsys):
    path = scenario(expert_shares_file="none.csv")
    assert main(["run", str(path)]) == 2
    err = capsys.readouterr().err
    assert "program.expert_shares_file: there is no such file" in err
    assert "none.csv" in err
    (path.parent / "shares.csv").write_text("1,2,3\n")
    assert main(["run", str(scenario(expert_shares_file="shares.csv"))]) == 2
    assert "there are 4 experts" in capsys.readouterr().err
    assert main(["run", str(scenario(expert_shares_file="shares.csv", expert_shares=[1.0, 1.0, 1.0, 1.0]))]) == 2
    assert "one of the two" in capsys.readouterr().err
