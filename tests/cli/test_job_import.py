"""`simperf import`: a file in, a scenario out, and messages for what is wrong."""

import pytest

ARGUMENTS = "--num-layers 4 --hidden-size 512 --num-attention-heads 8 --seq-length 256 --micro-batch-size 1 --bf16"


def test_a_script_becomes_a_scenario_that_runs(simperf, tmp_path):
    (tmp_path / "train.sh").write_text(f"torchrun --nproc_per_node $N x.py {ARGUMENTS} --odd-one 3\n")
    code, out, err = simperf("import", "train.sh", "--variable", "N=8", "--on", "dgx-h100", "-o", "job.toml")
    assert (code, out) == (0, "")
    assert "--odd-one (line 1): not understood (read: '3')" in err
    code, out, err = simperf("run", "job.toml")
    assert code == 0, err
    assert "time per step" in out


def test_without_output_the_scenario_is_printed(simperf, tmp_path):
    code, out, _ = simperf("import", "--arguments", ARGUMENTS, "--gpus", "8")
    assert code == 0
    assert 'use = "dgx-h100"  # assumed' in out
    (tmp_path / "printed.toml").write_text(out)
    assert simperf("check", "printed.toml")[0] == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "--arguments: neither a file nor arguments are given"),
        (("none.sh",), "none.sh"),
        (("--arguments", "--num-layers '3"), "--arguments"),
        (("--arguments", ARGUMENTS, "--on", "dgx-h1000"), "--on"),
        (("--arguments", ARGUMENTS, "--framework", "megatrom"), "did you mean 'megatron'?"),
        (("--arguments", ARGUMENTS, "--variable", "N"), "NAME=VALUE"),
        (("--arguments", ARGUMENTS, "--variable", "N=3"), "has no effect"),
        (("--arguments", ARGUMENTS, "--set", "program.nonsense=3"), "program.nonsense"),
        (("--arguments", ARGUMENTS, "--gpus", "12"), "12 GPUs are no multiple of the server's 8"),
        (("--arguments", ARGUMENTS, "-o", "job.json"), "job.json"),
    ],
)
def test_what_is_wrong_is_told(simperf, words, told):
    code, out, err = simperf("import", *words)
    assert (code, out) == (2, "")
    assert told in err
    assert "Traceback" not in err
