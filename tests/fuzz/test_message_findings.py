"""Messages that once said what is wrong and not what would be right, or moved the cursor of a terminal."""

import json

import pytest
import tomli_w

from simperf.cli import main
from tests.fuzz import sources
from tests.fuzz.jobs import RECORDED
from tests.fuzz.messages import unhelpful
from tests.fuzz.searches import JOB

PROGRAM = '[program]\nuse = "async-chain"\n'
VARIANT = '[[compare]]\nname = "a"\nset = { %s = 1 }\n'


@pytest.fixture
def told(here, capsys):
    """What is said of a command that is refused: with a place, what would be right, and letters alone."""

    def run(*words):
        assert main(list(words)) == 2
        err = capsys.readouterr().err
        assert unhelpful(err, [path.name for path in here.iterdir()], words[1:]) == ("", ""), err
        assert all(letter.isprintable() or letter == "\n" for letter in err)
        return err

    return run


@pytest.mark.parametrize(
    ("text", "right"),
    [
        (f"{PROGRAM}# one\rother\n", "lines that end as on Unix"),
        (f"{PROGRAM}[[[[\n", "[table] or [[table]]"),
        (f"program = 3\n{VARIANT % 'program.n'}", "a table [program] is expected"),
        (PROGRAM + VARIANT % "'machine.link[0].bandwidth'", "a file with machine.link = [...]"),
    ],
)
def test_scenarios(here, told, text, right):
    (here / "s.toml").write_bytes(text.encode())
    assert right in told("check", "s.toml")


def test_control_characters_are_written_as_python_does(told):
    for words in (("--set", "program.\x1b[31m=1"), ("--save", "a\x1b[31m/x.json"), ("--variant", "\x1b[31m")):
        assert "\\x1b[31m" in told("run", "d2l/async", *words)
    assert "\\x1b[31m" in told("run", "\x1b[31m.toml")


def test_a_whole_number_of_thousands_of_digits_in_an_option(told):
    assert "--samples': Input should be a whole number of at most 64 bits" in told("run", "x", "--samples", "9" * 5000)


def test_a_seed_is_blamed_on_its_option(told):
    for command in ("run", "limits", "sweep", "compare"):
        assert "--seed': Input should be less than or equal to" in told(command, "d2l/async", "--seed", "9" * 20)


def test_more_channels_than_a_socket_has(told):
    assert "it must be at most the socket's" in told("run", "d2l/memory-bursts", "--set", "program.channels=99")


def test_a_list_in_place_of_a_number_of_a_model(here, told):
    (model, *_) = sources.sources()["model"]
    data = model.tree()
    row = next(row for row in data["ops"] if any(isinstance(one, list) for one in row[3]))
    one = next(one for one in row[3] if isinstance(one, list)) if row[3] else []
    one[1] = [[], 1]
    (here / "m.json").write_text(json.dumps(data, indent=1))
    assert "a number" in told("zoo", "show", "m.json")


def test_a_draw_without_an_end(here, told):
    model = sources.PROFILE["model"]["frontend.launch"]
    launch = {**model["constant"]["launch"], "draws": [0.9, float("-inf"), 1.0]}
    changed = {**sources.PROFILE["model"], "frontend.launch": {**model, "constant": {"launch": launch}}}
    (here / "p.toml").write_text(tomli_w.dumps({**sources.PROFILE, "model": changed}))
    assert "draws[1]: a finite number is expected" in told("check", "p.toml")


@pytest.mark.parametrize(
    ("name", "text", "right"),
    [
        ("t.csv", "size [MiB],time [us],ranks\n", "a row for each point"),
        ("t.csv", "size [MiB],time [us],ranks\n1,50\n", "as many as headers"),
        ("n.json", '{"args": ["all_reduce_perf"], "results": [', "the whole of what nccl-tests wrote"),
        ("t.json", '{"traceEvents": [', "the whole of what the profiler wrote"),
    ],
)
def test_measurements(here, told, name, text, right):
    (here / name).write_text(text)
    assert right in told("calibrate", "import", name)


def test_a_recording_without_points(here, told):
    data = sources.sources()["recording"][0].tree()
    (here / "d.json").write_text(json.dumps({**data, "measurements": []}))
    assert "simperf calibrate measure" in told("calibrate", "fit", "d.json")


def test_a_limit_that_leaves_no_candidate(here, told):
    plan = {**sources.PLAN, "limits": {"price": "1 USD/h"}}
    (here / "plan.toml").write_text(tomli_w.dumps(plan))
    assert "a higher limit, or other candidates" in told("plan", "plan.toml")


def test_a_file_that_is_read_is_not_written(here, told):
    main(["scenarios", "copy", "measured/two-gpus-v100", "s.toml"])
    before = (here / "s.toml").read_bytes()
    assert "the command reads the same file" in told("accuracy", "s.toml", "-o", "./s.toml")
    assert (here / "s.toml").read_bytes() == before


@pytest.mark.parametrize("rank", ["0.0001", '"a"', "true", "3"])
def test_a_ring_whose_ranks_are_no_numbers(here, told, rank):
    order = f"program.options={{order = [0, 1, 2, 3, 4, 5, 6, {rank}]}}"
    assert "whole numbers from 0 to 7" in told(
        "run", "d2l/ring-8-v100", "--set", "program.algorithm=ring", "--set", order
    )


def test_the_only_server_is_lost(here, told):
    assert "servers that are not lost" in told("run", "training/fail-server", "--set", 'program.servers=["gpu1"]')


def test_names_with_characters_that_are_not_printed():
    err = "error: a\\rb: a model is a .json, .json.gz or .toml file\n    expected: model.json\n"
    assert unhelpful(err, [], ["nowhere.py:Net", "--output", "a\rb"]) == ("", "")


@pytest.mark.parametrize(("table", "value"), [("made", -2), ("machine", 1e300)])
def test_conditions_of_a_recording_that_cannot_be(here, told, table, value):
    data = sources.sources()["recording"][0].tree()
    (here / "d.json").write_text(json.dumps({**data, table: {**data[table], "threads": value}}))
    assert f"{table}.threads: a number from 0 to 1e+18 is expected" in told("calibrate", "fit", "d.json")


def test_a_link_that_is_slow_until_it_begins_to_be(told):
    times = ["--set", "program.slow_from=2 s", "--set", "program.slow_until=1 s"]
    assert "an end after 2 s" in told("run", "training/slow-link", "--set", "program.slow_link=gpu3>hub", *times)


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (("broadcast", "--root", "9"), "--root: "),
        (("all-reduce", "--algo", "hierarchical", "--group", "3"), "--group: "),
        (("all-reduce", "--algo", "multi-ring", "--channels", "-1"), "--channels: "),
    ],
)
def test_options_of_algorithms_are_told_by_their_flags(told, words, option):
    assert f"error: {option}" in told(
        "collective", *words, "--topology", "ring", "--ranks", "4", "-b", "1M", "-e", "1M"
    )


def test_a_point_of_an_unknown_precision(here, told):
    data = sources.sources()["recording"][0].tree()
    point = next(one for one in data["measurements"] if "dtype" in one["at"])
    point["at"]["dtype"] = "0.5"
    (here / "d.json").write_text(json.dumps(data))
    assert "d.json: measurements: unknown precision '0.5'" in told("calibrate", "fit", "d.json").replace("\n", "")


def test_a_gpu_that_a_step_was_not_recorded_on(here, told):
    (here / "step.json").write_text(json.dumps(sources.sources()["replay"][0].tree()))
    said = told("replay", "step.json", "--on", "h100-sxm5-80gb", "--recorded-on", "+1")
    assert "--recorded-on: no such GPU (read: +1)" in said


def test_an_algorithm_that_there_is_not(told):
    assert "--algo: unknown all-reduce algorithm '-1'" in told(
        "collective", "all-reduce", "--server", "dgx-a100", "-a-1"
    )


def test_a_value_of_a_stack_that_cannot_be(here, told):
    raw = next(one.raw for one in sources.sources()["stack"] if one.name == "mxnet-kvstore-dist.toml")
    (here / "s.toml").write_bytes(raw.replace(b"take = 1.0", b"take = -1.0"))
    said = told("check", "s.toml")
    assert "s.toml:14: serving.take: memory traffic of 0 or more is expected (read: -1.0)" in said


@pytest.mark.parametrize("name", ["7 us", "lambda x", 1])
def test_a_pass_that_names_no_constant(here, told, name):
    data = sources.sources()["recording"][0].tree()
    next(one for one in data["measurements"] if "pass" in one["at"])["at"]["pass"] = name
    (here / "d.json").write_text(json.dumps(data))
    assert f"at.pass is {name!r}: a word such as 'forward' is expected" in told("calibrate", "fit", "d.json")


def test_three_quotes_without_an_end(here, told):
    (here / "s.toml").write_text("title = '''a")
    assert "three closing quotes" in told("check", "s.toml")


@pytest.mark.parametrize("key", ["cores", "sms"])
def test_a_fact_of_a_machine_that_is_no_number(here, told, key):
    data = sources.sources()["recording"][0].tree()
    (here / "d.json").write_text(json.dumps({**data, "machine": {**data["machine"], key: "1e+300 %"}}))
    assert f"machine.{key}: a number is expected (read: '1e+300 %')" in told("calibrate", "fit", "d.json")


def test_a_fact_of_a_profile_that_is_no_number(here, told):
    name, data = next((one.name, one.tree()) for one in sources.sources()["profile"] if "machine" in one.tree())
    (here / name).write_text(tomli_w.dumps({**data, "machine": {"sms": "7 us", "l3": 0}}))
    said = told("check", name)
    assert "machine.sms: a number of 1 or more is expected (read: '7 us')" in said
    assert "machine.l3: a number of 1 or more is expected (read: 0.0)" in said


def test_a_run_that_ends_before_its_first_checkpoint(told):
    said = told("run", "training/checkpoint-by-hand", "--set", "program.interval=1000 s")
    assert "expected: at most 400 s" in said


@pytest.mark.parametrize("words", [("zoo", "show", "lenet"), ("zoo", "show", "lenet", "--kernels")])
def test_a_batch_without_an_end(told, words):
    assert "'--batch'" in told(*words, "--batch", "9" * 400)


def test_a_log_whose_head_lacks_a_column(here, told):
    head = "#       size         count      type   redop    root     time   algbw   bushw #wrong\n"
    (here / "n.txt").write_text(head + "  1048576  262144  float  sum  -1  100.0  10.49  18.35  0\n")
    said = told("collective", "all-reduce", "--server", "dgx-a100", "--measured", "n.txt")
    assert "there is no header before it" in said


def test_a_stack_that_there_is_not_without_a_machine(here, told):
    (here / "s.toml").write_text('[program]\nuse = "train"\nmodel = "resnet50"\nstack = "auto"\n')
    assert "s.toml:4: program.stack: unknown stack 'auto'" in told("check", "s.toml")


def test_a_copy_that_cannot_be_written(here, told):
    assert main(["scenarios", "copy", "large/recorded-step"]) == 0
    assert "expected: another folder" in told("scenarios", "copy", "large/recorded-step", "other.toml")
    assert "sub/x.toml: the folder of this file does not exist" in told("scenarios", "copy", "d2l/async", "sub/x.toml")


def test_a_trace_that_is_given_twice(here, told):
    assert main(["scenarios", "copy", "large/recorded-step"]) == 0
    said = told("replay", "recorded-step.json.gz", "recorded-step.json.gz", "--on", "dgx-h100")
    assert "recorded-step.json.gz: another trace is of this rank (read: rank 0)" in said


@pytest.mark.parametrize("name", ["d2l/disks", "training/checkpoint-one-gpu"])
def test_a_disk_that_the_machine_does_not_have(told, name):
    said = told("run", name, "--set", "program.disk=1e-300 %")
    assert "--set: program.disk: the machine has no disk '1e-300 %'" in said
    assert "expected: one of " in said


def test_a_disk_of_a_machine_without_disks(told):
    said = told("run", "d2l/disks", "--set", "machine.use=book-4gpu", "--set", "program.disk=a")
    assert 'a machine with a disk, as { id = "disk0", storage = "nvme-ssd" }' in said


def test_a_comparison_of_too_many_events_names_its_file(here, told):
    variants = [f'[[compare]]\nname = "{n}"\nset = {{ "program.n" = 400_00{n} }}\n' for n in range(4)]
    (here / "s.toml").write_text(PROGRAM + "".join(variants))
    said = told("compare", "s.toml")
    assert said.startswith("error: s.toml: ")
    assert "not kept at once" in said


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("machine.count=1", "--what-if: layout: the layout has 16 ranks"),
        ("precision=fp8", "--what-if: program.product_precision: n1/gpu7 (a100-sxm4-40gb) has no units"),
    ],
)
def test_what_if_questions_that_no_run_answers_are_blamed_on_the_option(here, told, asked, said):
    (here / "s.toml").write_text(tomli_w.dumps(JOB), "utf-8")
    assert said in told("run", "s.toml", "--what-if", asked)


def test_a_file_and_arguments_of_an_import(told):
    assert "--arguments: a file is given, too" in told("import", "j.sh", "--arguments", "1e30")


def test_a_job_that_cannot_be_run_is_explained_with_its_file_and_line(here, told):
    (here / "step.json").write_bytes(sources.replayed()[0])
    (here / "s.toml").write_text(RECORDED.replace("steps = 1", "steps = 0"), "utf-8")
    assert "s.toml:9: program.steps: at least one step is needed" in told("explain", "step.json", "s.toml")


def test_a_search_of_which_no_layout_can_be_simulated_is_blamed_on_its_option(here, told):
    (here / "m.toml").write_text(tomli_w.dumps(JOB["model"]), "utf-8")
    words = ("plan", "--layouts", "m.toml", "--on", "mi300x-8gpu", "--vary", "tp=1", "--stack", "llm-foundry")
    assert "--layouts: no layout can be simulated: library: attention" in told(*words)


def test_names_that_are_too_long_for_a_file_are_blamed_on_their_keys(here, told):
    name = "9" * 400
    plan = {"plan": {"model": name, "samples": 1, "deadline": "1 h"}, "candidates": {"instances": ["p3-2xlarge"]}}
    texts = {
        "plan.toml:2: plan.model": tomli_w.dumps(plan),
        "plan.toml:2: layouts.model": tomli_w.dumps({"layouts": {"model": name, "on": "dgx-a100"}}),
        "plan.toml:4: model.name": f'[machine]\nuse = "dgx-1v"\n[model]\nname = "{name}"\n[program]\nuse = "train"\n',
    }
    for place, text in texts.items():
        (here / "plan.toml").write_text(text, "utf-8")
        assert place in told("check", "plan.toml")
