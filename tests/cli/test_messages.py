"""What a newcomer gets wrong on the command line is told by the option that was given, before anything is run."""

import pytest

from simperf.cli import main

CASES = {
    "limits d2l/async --crossover program.n": ["--crossover: 'program.n' does not say which values", "10..100 GB/s:5"],
    "limits d2l/async --crossover program.tt=1..5": [
        "--crossover: program.tt: the program 'async-chain' has no parameter 'tt'"
    ],
    "limits d2l/async --crossover program.n=1,2": ["--crossover: program.n: a range is expected"],
    "accuracy d2l/async": ["d2l/async: nothing that was measured", "[measured] with a metric's figure"],
    "topo dgx-1v --plot x": ["--plot: x: no picture format", "FILE.png, .svg or .pdf"],
    "topo dgx-1v --plot none/x.png": ["--plot: none/x.png: there is no folder 'none'"],
    "topo v100-sxm2-16gb": ["unknown machine 'v100-sxm2-16gb', which is a gpu"],
    "collective all-reduce --server nvlink2": ["unknown machine 'nvlink2', which is a link"],
    "catalog show dgx-1v --kind gpu": ["unknown gpu 'dgx-1v', which is a server"],
    "catalog show dgx-1v --kind gpux": ["unknown kind 'gpux'; did you mean 'gpu'?"],
    "sweep d2l/async --vary program.n=1,2 --plot-kind heatmap --plot x.png": [
        "--plot-kind: a heat map is over two keys",
        "two --vary",
    ],
    "lesson export hybrid x.txt": ["FILE: x.txt: the name must end in .html or .htm"],
    "scenarios foo": ["No such command 'foo'; known: copy, list"],
    "catalog lst": ["No such command 'lst'. Did you mean 'list'?"],
    "run d2l/asinc": ["no such file or shipped scenario; did you mean 'd2l/async'?"],
}


@pytest.mark.parametrize("words", CASES)
def test_it_is_told_by_its_name(words, simperf, monkeypatch):
    monkeypatch.delenv("SIMPERF_TRUTH", raising=False)  # with which `accuracy` has figures of its own
    code, out, err = simperf(*words.split())
    assert (code, out) == (2, "")
    for text in CASES[words]:
        assert text in err, err


def test_every_scenario_that_a_message_names_is_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["scenarios", "copy", "measured/two-gpus-v100"]) == 0
