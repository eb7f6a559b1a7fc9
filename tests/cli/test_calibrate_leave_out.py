"""`simperf calibrate leave-out`: where the profile goes, and what is refused before anything is computed."""

import pytest

from simperf.accuracy import cases
from simperf.accuracy.leave_out import measured_steps, profile
from simperf.cli.calibrate_leave_out import leave_out

TEXT = 'kind = "profile"\n'


@pytest.fixture
def read(monkeypatch):
    """Folders that were read; what follows from them is known."""
    folders = []
    monkeypatch.setattr(cases, "read_cases", lambda folder: folders.append(folder) or "cases")
    monkeypatch.setattr(measured_steps, "measured_steps", lambda: iter(("step",)))
    monkeypatch.setattr(profile, "unseen_text", lambda found, steps: f"{TEXT}# {found} {steps}\n")
    return folders


def test_the_profile_is_shown(simperf, read, tmp_path):
    code, out, err = simperf("calibrate", "leave-out", "truth")
    assert (code, out, err) == (0, f"{TEXT}# cases ['step']\n", "")
    assert [str(folder) for folder in read] == ["truth"]


def test_the_profile_is_written(simperf, read, tmp_path):
    code, out, err = simperf("calibrate", "leave-out", "truth", "-o", "unseen.toml")
    assert (code, out) == (0, "")
    assert "wrote unseen.toml" in err
    assert (tmp_path / "unseen.toml").read_text() == f"{TEXT}# cases ['step']\n"


def test_the_folder_may_come_from_the_environment(simperf, read, monkeypatch):
    monkeypatch.setenv("SIMPERF_TRUTH", "measured")
    assert simperf("calibrate", "leave-out")[0] == 0
    assert [str(folder) for folder in read] == ["measured"]


def test_a_file_that_is_no_profile_is_refused_before_anything_is_read(simperf, read):
    code, _, err = simperf("calibrate", "leave-out", "truth", "-o", "unseen.json")
    assert code == 2
    assert "unseen.json" in err
    assert not read


def test_the_command_says_what_it_does():
    assert leave_out.__doc__ is not None
    assert leave_out.__doc__.startswith("Leave out each architecture's GPUs")


def test_the_old_name_of_the_command_leads_to_the_new_one(simperf, read):
    code, _, err = simperf("calibrate", "unseen", "truth")
    assert code == 2
    assert "'unseen' is called 'leave-out' now: simperf calibrate leave-out" in " ".join(err.split())
    assert not read
