"""From a file to a scenario: what it holds, in SI units, and where its problems are placed."""

import pytest

from simperf.errors import InputError
from simperf.scenario import load_scenario, make_scenario

TEXT = """\
[scenario]
title = "Sums"
question = "How long?"
rows = ["E1"]

[machine]
use = "book-4gpu"

[frontend]
use = "pytorch"
launch = "3 us"
depth = "unlimited"

[execution]
mode = "captured"

[cost]
corner = "sharp"
efficiency = { gemm = "80 %" }

[program]
use = "all-reduce"
nbytes = "160 MB"
algorithm = "naive"

[run]
seed = 7

[expect]
kind = "regression"
time = "60 ms"

[[compare]]
name = "twice"
set = { "program.nbytes" = "320 MB" }
expect = { kind = "regression", time = "120 ms" }

[[compare]]
name = "elsewhere"
set = { machine.use = "dgx-1v", run.seed = 8 }
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "sums.toml"
    path.write_text(TEXT)
    return path


def problems(data_or_path, overrides=()):
    with pytest.raises(InputError) as caught:
        if isinstance(data_or_path, dict):
            make_scenario(data_or_path)
        else:
            load_scenario(data_or_path, overrides)
    return caught.value.problems


def test_every_table_is_read(file):
    s = load_scenario(file)
    assert (s.name, s.title, s.question, s.rows, s.path) == ("Sums", "Sums", "How long?", ("E1",), str(file))
    assert s.machine.gpus == ("gpu0", "gpu1", "gpu2", "gpu3")
    assert (s.frontend.name, s.frontend.launch, s.frontend.depth) == ("pytorch", 3e-6, float("inf"))
    assert s.frontend.result > 0, "what the file leaves out is the part's"
    assert s.frontend.sources["launch"] == "the scenario"
    assert (s.mode, s.cost.sharp, dict(s.cost.efficiency), s.seed) == ("captured", True, {"gemm": 0.8}, 7)
    assert s.program.name == "all-reduce"
    assert s.parameters["nbytes"] == 160e6
    assert s.parameters["times"] == 1, "defaults are there too"
    assert [e.key for e in s.expectations] == ["time"]
    assert "compare" not in s.data
    assert s.data["program"]["nbytes"] == "160 MB"


def test_variants_are_whole_scenarios(file):
    base = load_scenario(file)
    twice, elsewhere = base.variants
    assert (twice.name, twice.title, twice.parameters["nbytes"], twice.seed) == ("twice", "Sums", 320e6, 7)
    assert twice.machine.gpus == base.machine.gpus
    assert twice.expectations[0].value == "120 ms", "its own expectations, not those of the file"
    assert (len(elsewhere.machine.gpus), elsewhere.seed, elsewhere.expectations) == (8, 8, ())
    assert base.parameters["nbytes"] == 160e6, "the file itself is as before"


def test_without_a_machine_or_frontend_the_defaults_hold():
    s = make_scenario({"program": {"use": "async-chain", "n": 5}})
    assert (s.machine, s.frontend.name, s.frontend.launch, s.mode, s.seed, s.name) == (
        None,
        "free",
        0.0,
        "eager",
        0,
        "async-chain",
    )


def test_the_command_line_changes_what_is_run(file):
    s = load_scenario(file, ["program.nbytes=1 GB", "machine.use=dgx-1v"])
    assert (s.parameters["nbytes"], len(s.machine.gpus)) == (1e9, 8)
    assert s.overridden
    assert s.expectations == ()
    assert all(v.overridden and not v.expectations for v in s.variants)
    assert s.variants[0].parameters["nbytes"] == 320e6, "a variant says more than the command line"


def test_what_does_not_change_the_run_keeps_its_expectations(file):
    for overrides in (["scenario.title=Other"], ["expect.time=61 ms"], ["program.nbytes=160 MB"]):
        s = load_scenario(file, overrides)
        assert not s.overridden
        assert s.expectations
    assert load_scenario(file, seed=7).overridden is False
    assert load_scenario(file, seed=9).seed == 9
    assert load_scenario(file, seed=9).overridden


def test_an_override_is_blamed_where_it_was_written(file):
    (one,) = problems(file, ["program.nbyts=1 GB"])
    assert (one.file, one.line, one.key) == ("--set", 0, "program.nbyts")
    (two,) = problems(file, ["frontend.launch=5 GB"])
    assert (two.file, two.key, two.value) == ("--set", "frontend.launch", "'5 GB'")
    (three,) = problems(file, ["progam.n=3"])
    assert (three.file, three.key) == ("--set", "progam")
    (four,) = problems(file, ["n=3"])
    assert "program.n" in four.expected


def test_setting_machine_use_replaces_a_machine_of_its_own():
    wired = {
        "node": [{"id": "a", "kind": "gpu"}, {"id": "b", "kind": "gpu"}],
        "link": [{"a": "a", "b": "b", "bandwidth": "1 GB/s"}],
    }
    data = {
        "machine": wired,
        "program": {"use": "sends", "source": "a", "target": "b"},
        "compare": [
            {"name": "real", "set": {"machine.use": "dgx-1v", "program.source": "gpu0", "program.target": "gpu1"}}
        ],
    }
    s = make_scenario(data)
    assert s.machine.gpus == ("a", "b")
    assert len(s.variants[0].machine.gpus) == 8


def test_own_parts_are_found_beside_the_file(tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    (folder / "string.toml").write_text(
        'kind = "link"\ntitle = "Wet string"\ntechnology = "wan"\nrate = "8 bit/s"\nlatency = "1 s"\n'
        '[source]\ndefault = "a joke"\n'
    )
    path = tmp_path / "s.toml"
    path.write_text(
        '[machine]\nfolder = "parts"\n[[machine.node]]\nid = "gpu{0..1}"\ngpu = "t4"\n'
        '[[machine.link]]\na = "gpu0"\nb = "gpu1"\npart = "string"\n[program]\nuse = "sends"\n'
    )
    assert load_scenario(path).machine.route("gpu0", "gpu1").bandwidth == 1.0


def test_two_variants_need_two_names():
    data = {"program": {"use": "async-chain"}, "compare": [{"name": "a"}, {"name": "a"}]}
    assert "two variants are called 'a'" in problems(data)[0].message


def test_problems_come_in_the_order_of_the_file(file):
    file.write_text(
        TEXT.replace('"160 MB"', '"160 Mb"').replace('"captured"', '"capturd"').replace("seed = 7", "seed = 0.5")
    )
    found = problems(file)
    assert [p.key for p in found] == ["execution.mode", "program.nbytes", "run.seed"]
    assert [p.line for p in found] == [15, 23, 27]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_numbers_are_finite_wherever_they_stand(value):
    (one,) = problems({"program": {"use": "all-reduce", "options": {"x": [1.0, value]}}})
    assert one.key == "program.options.x[1]"


def test_tables_must_be_tables():
    found = problems({"program": 3, "compare": {"name": "a"}})
    assert any("[[compare]]" in p.message for p in found)
    assert any(p.key == "program" for p in found)


def test_a_choice_of_types_is_no_part_of_a_key(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text('[program]\nuse = "async-chain"\n[calibration]\nuse = ["cpu-epyc-zen5-2c", 3]\n')
    with pytest.raises(InputError) as caught:
        load_scenario(str(path))
    assert {problem.key for problem in caught.value.problems} <= {"calibration.use", "calibration.use[1]"}
    assert all(problem.line == 4 for problem in caught.value.problems)
