"""`simperf collective` with a profile, and beside a user's log."""

import csv
import io
import json

import pytest

import simperf
from simperf.cli import main
from simperf.errors import InputError
from tests.calibrate.nccl_logs import nccl_log
from tests.calibrate.test_nccl_profile import of_program, times

ON = ("collective", "all-reduce", "--server", "dgx-a100")


@pytest.fixture
def log(tmp_path):
    file = tmp_path / "all_reduce.log"
    file.write_text(nccl_log(times(), 8))
    return file


@pytest.fixture
def profile(log, tmp_path, capsys):
    assert main(["calibrate", "import", str(log), "-o", str(tmp_path / "data.json")]) == 0
    assert main(["calibrate", "fit", str(tmp_path / "data.json"), "-o", str(tmp_path / "mine.toml")]) == 0
    capsys.readouterr()
    return tmp_path / "mine.toml"


@pytest.fixture
def asked(capsys):
    def run(*words, code=0):
        assert main([*map(str, words)]) == code
        found = capsys.readouterr()
        return found.out if code == 0 else found.err

    return run


def test_the_table_takes_what_the_log_says(asked, profile):
    words = (*ON, "--profile", profile, "-b", "8", "-e", "1G", "--format", "json")
    rows = json.loads(asked(*words))
    for row in rows:
        assert row["time"] == pytest.approx(times()[row["size"]], rel=0.02)
        assert of_program(profile, row["size"]).time == pytest.approx(row["time"], rel=1e-12)
    assert "# profile mine: Fitted to" in asked(*ON, "--profile", profile)
    (row,) = simperf.collective("all-reduce", on="dgx-a100", sizes=["64M"], profile=profile)
    assert row.time == next(one["time"] for one in rows if one["size"] == 1 << 26)


def test_measured_stands_beside_predicted_before_and_after_the_fit(asked, profile, log):
    before = json.loads(asked(*ON, "--measured", log, "--format", "json"))
    after = json.loads(asked(*ON, "--measured", log, "--profile", profile, "--format", "json"))
    assert [row["size"] for row in before] == list(times())
    assert max(abs(row["error"]) for row in before) > 0.1
    assert all("profile" not in row for row in before)
    for one, two in zip(before, after, strict=True):
        assert (one["measured"], one["predicted"]) == (two["measured"], two["predicted"])
        assert abs(two["profile_error"]) < 0.02
    text = asked(*ON, "--measured", log, "--profile", profile, "-b", "1M", "-e", "4M")
    assert "# predicted: mean" in text
    assert "with the profile: mean 0.0%" in text.replace("\n#   ", " ")
    assert sum(line.startswith("  ") for line in text.splitlines()) == 3
    table = list(csv.DictReader(io.StringIO(asked(*ON, "--measured", log, "--format", "csv"))))
    assert float(table[0]["measured [s]"]) == pytest.approx(times()[8], rel=1e-3)


def test_a_table_of_a_benchmark_and_its_ranks(asked, tmp_path):
    file = tmp_path / "h100.csv"
    file.write_text("n,size (B),min (ms),median (ms),mean (ms)\n2,1048576,0.03,0.04,0.05\n4,1048576,0.05,0.06,0.07\n")
    on = ("collective", "all-reduce", "--server", "dgx-h100", "--measured", file, "--format", "json")
    (row,) = json.loads(asked(*on, "--ranks", "4"))
    assert row["measured"] == pytest.approx(6e-5)
    assert "times among 2, 4 ranks" in asked(*on, code=2)


def test_what_does_not_go_together_is_refused(asked, profile, log, tmp_path):
    assert "the profile changes nothing" in asked(*ON, "--ranks", "4", "--profile", profile, code=2)
    assert "the profile changes nothing" in asked(*ON, "--algo", "ring", "--profile", profile, code=2)
    assert "times among 8 ranks" in asked(*ON, "--ranks", "4", "--measured", log, code=2)
    cluster = ("collective", "all-reduce", "--server", "dgx-a100", "--nodes", "2", "--measured", log)
    assert "times among 8 ranks, and 16 take part" in asked(*cluster, code=2)
    assert "--best: measured times are shown with" in asked(*ON, "--best", "--measured", log, code=2)
    assert "no measured size lies between" in asked(*ON, "--measured", log, "-b", "2G", "-e", "4G", code=2)
    assert "no such file" in asked(*ON, "--profile", "none.toml", code=2)
    with pytest.raises(InputError, match="changes nothing"):
        simperf.collective("all-reduce", on="dgx-a100", sizes=["1M"], ranks=2, profile=profile)


def test_a_log_of_another_machine_is_refused_where_its_links_are_too_slow(asked, tmp_path):
    """Eight GPUs over PCIe cannot do what was measured over NVSwitch."""
    file, data, profile = (tmp_path / name for name in ("fast.log", "data.json", "fast.toml"))
    file.write_text(nccl_log({2**30: 5e-3}, 8))
    asked("calibrate", "import", file, "-o", data)
    asked("calibrate", "fit", data, "-o", profile)
    words = ("collective", "all-reduce", "--server", "rtx4090-8gpu", "--profile", profile, "-b", "1G", "-e", "1G")
    assert "below the bound of the links" in asked(*words, code=2)


def test_links_of_a_profile_count_too(asked, tmp_path):
    from simperf.calibrate.dataset import Dataset
    from simperf.calibrate.profile import models_text
    from tests.scenario.test_profile_use import model

    file = tmp_path / "links.toml"
    file.write_text(models_text(Dataset("mine"), {"link.nvlink3": model("B/s", bandwidth=15e9)}, points=9))
    words = (*ON, "-b", "1G", "-e", "1G", "--format", "json")
    (plain,), (slow,) = (json.loads(asked(*words, *more)) for more in ((), ("--profile", file)))
    assert slow["time"] > 1.2 * plain["time"]
