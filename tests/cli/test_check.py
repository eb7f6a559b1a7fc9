"""`simperf check`: files read, parts read, and scenarios held to what they carry."""

import pytest

from simperf.programs.stack_file import stacks
from simperf.workload import zoo
from simperf.workload.modelfile import write_model


def test_scenarios_and_parts(simperf, chain, tmp_path):
    part = tmp_path / "string.toml"
    part.write_text(
        'kind = "link"\ntitle = "Wet string"\ntechnology = "wan"\nrate = "8 bit/s"\nlatency = "1 s"\n'
        '[source]\ndefault = "a joke"\n'
    )
    server = tmp_path / "two.toml"
    server.write_text(
        'kind = "server"\ntitle = "Two"\n[[node]]\nid = "gpu{0..1}"\ngpu = "t4"\n'
        '[[link]]\na = "gpu0"\nb = "gpu1"\npart = "string"\n[source]\ndefault = "x"\n'
    )
    code, out, err = simperf("check", chain, part)
    assert (code, err) == (0, "")
    assert "2 variants" in out
    assert "link Wet string" in out
    assert simperf("check", server)[:2] == (0, f"ok  {server}: server of 2 GPUs\n")
    folder = tmp_path / "parts"
    folder.mkdir()
    part.rename(folder / part.name)
    code, _, err = simperf("check", server)
    assert code == 2
    assert "unknown link 'string'" in err
    code, out, _ = simperf("check", server, "--folder", folder)
    assert code == 0
    assert "server of 2 GPUs" in out


def test_expectations_are_checked_when_it_runs(simperf, chain):
    code, out, _ = simperf("check", "--run", chain)
    assert code == 0
    assert "4 expectations (2 regression, 2 closed form) met" in out
    assert "2 variants, 4 expectations (2 regression, 2 closed form)" in simperf("check", chain)[1]
    chain.write_text(chain.read_text().replace('"41 ms"', '"42 ms"').replace("max = 2 ", "max = 1.6 "))
    assert simperf("check", chain)[0] == 0
    code, out, _ = simperf("check", "--run", chain)
    assert code == 1
    assert "chain.toml, slow: time is not as expected: 41.00 ms, expected 42.00 ms" in out
    assert "time of slow / fast is not as expected" in out
    assert "(closed form: t1 + n t2 + t3)" in out


def test_an_error_that_is_expected_is_no_failure(simperf):
    assert simperf("check", "--run", "d2l/run-ahead")[0] == 0


def test_all_that_ships_is_sound(simperf):
    code, out, err = simperf("check", "--shipped")
    assert (code, err) == (0, "")
    assert out.count("ok  ") == len(out.splitlines()) > 20


def test_a_server_is_checked_with_the_parts_beside_it(simperf, tmp_path):
    (tmp_path / "own-link.toml").write_text(
        'kind = "link"\ntitle = "Cable"\ntechnology = "fabric"\nrate = "200 Gbit/s"\nlatency = "300 ns"\n'
        '[source]\ndefault = "measured here"\n'
    )
    box = tmp_path / "box.toml"
    box.write_text(
        'kind = "server"\ntitle = "Two GPUs"\n'
        '[[node]]\nid = "gpu{0..1}"\ngpu = "l4"\n'
        '[[node]]\nid = "cpu0"\ncpu = "epyc-7742"\n'
        '[[link]]\na = "gpu{0..1}"\nb = "cpu0"\npart = "own-link"\n'
    )
    code, out, _ = simperf("check", box)
    assert (code, out) == (0, f"ok  {box}: server of 2 GPUs\n")
    (tmp_path / "notes.toml").write_text('title = "not a part"\n')
    code, _, err = simperf("check", box, "--folder", tmp_path)
    assert code == 2
    assert "notes.toml: kind: the file does not say its kind" in err


PLAN = """[plan]
model = "resnet18"
samples = 1000
epochs = 1
[candidates]
instances = ["p3-2xlarge", "p3-8xlarge"]
nodes = [1, 2]
batch_per_gpu = 32
"""


def test_a_plan_is_checked(simperf, tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    assert simperf("check", path) == (0, f"ok  {path}: plan for resnet18, 4 candidates\n", "")
    path.write_text(PLAN.replace("epochs", "epoch"))
    code, _, err = simperf("check", path)
    assert code == 2
    assert f"{path}:4: plan.epoch: unknown key; did you mean 'epochs'?" in err


STACK = """format = 1
kind = "stack"
title = "Two at a time"
frontend = "pytorch"
[strategy]
kind = "servers"
overlap = false
[transport]
window = 2
[source]
frontend = "its manual"
overlap = "its code"
window = "assumed"
"""


def test_a_stack_is_checked(simperf, tmp_path):
    path = tmp_path / "good.toml"
    path.write_text(STACK)
    said = f"ok  {path}: stack Two at a time of strategy servers, 2 values with a source\n"
    assert simperf("check", path) == (0, said, "")
    folder = tmp_path / "parts"
    folder.mkdir()
    (folder / "own.toml").write_text('kind = "frontend"\ntitle = "Own"\n')
    own = tmp_path / "own-frontend.toml"
    own.write_text(STACK.replace('"pytorch"', '"own"'))
    assert simperf("check", own)[0] == 2
    assert simperf("check", own, "--folder", folder)[0] == 0
    for number, (old, new, words) in enumerate(
        (
            ("window = 2", "windows = 2", "9: transport.windows: "),
            ('window = "assumed"', "", "9: transport.window: a value needs a source"),
            ('"pytorch"', '"pytorhc"', "4: frontend: unknown frontend 'pytorhc'"),
            ('"stack"', '"stak"', "2: kind: no kind of part; did you mean 'stack'"),
            ("format = 1", "format = 2", "1: format"),
        )
    ):
        wrong = tmp_path / f"wrong{number}.toml"
        wrong.write_text(STACK.replace(old, new, 1))
        code, out, err = simperf("check", wrong)
        assert (code, out) == (2, "")
        assert f"{wrong}:{words}" in err
    code, _, err = simperf("run", path)
    assert code == 2
    assert "kind: this is the file of a stack, not of a scenario" in err
    path = path.rename(tmp_path / "good.stack")
    code, _, err = simperf("check", path)
    assert code == 2
    assert "by a path that ends in .toml" in err


def test_every_shipped_stack_is_sound(simperf):
    code, out, err = simperf("check", *stacks().values())
    assert (code, err) == (0, "")
    assert len(out.splitlines()) == len(stacks())


def test_a_file_of_another_kind_is_told_in_one_line(simperf, chain, tmp_path):
    plan, part = tmp_path / "plan.toml", tmp_path / "part.toml"
    plan.write_text(PLAN)
    part.write_text('kind = "gpu"\ntitle = "G"\nsms = 1\nmemory_bandwidth = "1 TB/s"\n')
    for words, what, command in (
        (("run", plan), "plan: this is the file of a plan, not of a scenario", "simperf plan"),
        (("compare", part), "kind: this is the file of a part, server or cluster, not of a scenario", "simperf check"),
        (("plan", chain), "program: this is the file of a scenario, not of a plan", "simperf run"),
        (
            ("run", "d2l/async", "--set", f"calibration.use={chain}"),
            "program: this is the file of a scenario, not of a part, server or cluster",
            "simperf run",
        ),
        (("plan", part), "kind: this is the file of a part, server or cluster, not of a plan", "simperf check"),
    ):
        code, out, err = simperf(*words)
        assert (code, out) == (2, "")
        assert what in err
        assert f"expected: `{command} FILE`" in err
        assert err.count("error: ") == 1


def test_a_scenario_is_no_saved_result(simperf, chain):
    code, _, err = simperf("show", chain)
    assert code == 2
    assert "`simperf run FILE` runs a scenario" in err


MODEL = "format = 1\nname = 'mine'\nlayers = 2\nhidden = 64\nheads = 4\nvocabulary = 100\nsequence = 16\n"
CONFIG = """{
"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
"intermediate_size": 128, "vocab_size": 100, "max_position_embeddings": 16
}"""


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("model.toml", MODEL, "model mine by its dimensions, 144,192 parameters"),
        ("layout.toml", "format = 1\ndp = 4\ntp = 2\n", "of 8 ranks"),
        ("config.json", CONFIG, "configuration of a transformer of 95,040 parameters"),
        ("bad-model.toml", MODEL.replace("heads = 4", "heads = 5"), "bad-model.toml:5: heads: "),
        ("bad-layout.toml", "dp = 4\ntp = 0\n", "bad-layout.toml:2: tp: "),
        ("bad.json", CONFIG.replace('s": 4', 's": 5'), "bad.json:2: num_attention_heads: hidden_size = 64 is not"),
        ("other.json", "{}", "neither a traced model nor the configuration of a transformer"),
    ],
)
def test_a_model_a_layout_and_a_configuration_are_checked(simperf, tmp_path, name, text, said):
    (tmp_path / name).write_text(text)
    code, out, err = simperf("check", tmp_path / name)
    assert code == (0 if out else 2)
    assert said in out + err
    assert bool(out) == name.startswith(("model", "layout", "config"))


def test_a_traced_model_is_checked(simperf, tmp_path):
    write_model(zoo.load("lenet"), tmp_path / "lenet.json")
    code, out, _ = simperf("check", tmp_path / "lenet.json")
    assert (code, "traced, 129,068 parameters" in out) == (0, True)
    write_model(zoo.load("lenet"), tmp_path / "lenet.toml")
    assert "traced, 129,068 parameters" in simperf("check", tmp_path / "lenet.toml")[1]


def test_a_folder_that_is_not_there_or_has_no_effect_is_refused(simperf, tmp_path):
    code, _, err = simperf("check", "d2l/async", "--folder", tmp_path / "nowhere")
    assert code == 2
    assert "--folder: no such folder" in err
    code, _, err = simperf("check", "d2l/async", "--folder", tmp_path)
    assert code == 2
    assert "--folder: d2l/async is a scenario, which names no part of a folder" in err


def test_a_part_without_its_kind_is_told_so(simperf, tmp_path):
    part = tmp_path / "mine.toml"
    part.write_text('title = "A cable"\nrate = "1 GB/s"\n')
    code, _, err = simperf("check", part)
    assert code == 2
    assert f"{part}:1: this is the file of a part" in err
    assert 'kind = "gpu"' in err
    assert "unknown table" not in err


LAYOUT = """
[machine]
use = "dgx-a100-x4"
[model]
layers = 4
hidden = 256
heads = 4
vocabulary = 1000
sequence = 128
[layout]
%s
[program]
use = "train"
strategy = "model-parallel"
precision = "bf16-master"
batch = 16
"""


@pytest.mark.parametrize(
    ("layout", "told"),
    [
        ("pp = 3", ("lay.toml:11: layout.pp: ", "2 or 4 parts")),
        ("tp = 8", ("lay.toml:11: layout.tp: tp = 8 does not divide heads = 4", "expected: tp = 4")),
        ("pp = 8", ("lay.toml:11: layout.pp: ", "expected: 4 parts")),
        ("dp = 64", ("lay.toml:10: layout: ", "expected: at most 32 ranks, such as dp = 32")),
        ("dp = 5", ("lay.toml:16: program.batch: ", "expected: 15 or 20")),
    ],
)
def test_a_layout_that_does_not_divide_is_told_without_a_run(simperf, tmp_path, layout, told):
    (tmp_path / "lay.toml").write_text(LAYOUT % layout)
    code, _, err = simperf("check", tmp_path / "lay.toml")
    assert code == 2
    assert all(one in err for one in told), err


def test_a_model_that_does_not_fit_is_told_without_a_run(simperf, tmp_path):
    (tmp_path / "lay.toml").write_text(LAYOUT.replace("batch = 16", "batch = 32768\nmicrobatch = 16384") % "dp = 2")
    code, _, err = simperf("check", tmp_path / "lay.toml")
    assert code == 2
    assert "out of memory" in err
    assert "microbatch = " in err
