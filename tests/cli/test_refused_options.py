"""Options that have no effect alone, or are called otherwise now, are refused before anything is run."""

import pytest


@pytest.mark.parametrize(
    ("words", "option", "needed"),
    [
        ("run d2l/async --engine local:2", "--engine", "--samples"),
        ("run d2l/async --pace 3s", "--pace", "--live"),
        ("compare d2l/async --engine serial", "--engine", "--samples"),
        ("limits d2l/async --trajectories 16", "--trajectories", "--vary"),
        ("limits d2l/async --method sobol", "--method", "--vary"),
        ("limits d2l/async --by regime", "--by", "--crossover"),
        ("sweep d2l/async --vary program.n=1,2 --metric time", "--metric", "--plot"),
        ("sweep d2l/async --vary program.n=1,2 --plot-kind lines", "--plot-kind", "--plot"),
        ("sweep d2l/async --vary program.n=1,2 --fresh", "--fresh", "--output"),
    ],
)
def test_an_option_that_has_no_effect_alone(simperf, words, option, needed):
    code, out, err = simperf(*words.split())
    assert (code, out) == (2, "")
    assert err.splitlines() == [f"error: {option}: has no effect alone", f"    expected: {needed} too"]


def test_all_options_without_effect_are_told_at_once(simperf):
    code, _, err = simperf("limits", "d2l/async", "--by", "regime", "--method", "morris")
    assert code == 2
    assert "--by" in err
    assert "--method" in err


def test_beside_its_partner_it_has_one(simperf):
    words = ("run", "d2l/async", "--samples", 0, "--engine", "serial")
    assert simperf(*words)[0] == 0


def test_an_old_name_is_refused_with_the_new_one(simperf):
    code, _, err = simperf("collective", "all-reduce", "--wiring", "star", "--ranks", 4)
    assert code == 2
    assert "--wiring: no such option any more" in err
    assert "--topology star" in err
    assert "--wiring" not in simperf("collective", "--help")[1]


@pytest.mark.parametrize("version", ["1.3", "2.30", "99.1"])
def test_a_version_of_nccl_that_the_model_does_not_know(simperf, version):
    code, _, err = simperf("collective", "all-reduce", "--server", "dgx-a100", "--nccl-version", version)
    assert code == 2
    assert f"--nccl-version: no version of NCCL that the model knows (read: {version})" in err
    assert "2.0 to 2.29" in err


def test_earlier_names_of_options_are_read_and_not_listed(simperf):
    code, _, err = simperf("limits", "d2l/async", "--flip=program.n=1,2")
    assert (code, "--crossover: program.n: a range is expected" in err) == (2, True)
    assert "--flip" not in simperf("limits", "--help")[1]
    words = ("collective", "all-reduce", "--server", "dgx-a100", "--beside", "none.txt")
    assert "none.txt: no such file" in simperf(*words)[2]
