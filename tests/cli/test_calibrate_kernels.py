"""`simperf calibrate kernels`: where the profile goes, and what is refused before anything is computed."""

import pytest

from simperf.accuracy import lattice_profile


@pytest.fixture
def read(monkeypatch):
    """Folders that were read; what follows from them is known."""
    folders = []
    monkeypatch.setattr(lattice_profile, "kernel_calls", lambda folder: iter((folders.append(folder) or "call",)))
    monkeypatch.setattr(lattice_profile, "kernel_profile", lambda calls, gpu: f"# {gpu}: {calls}\n")
    return folders


def test_the_profile_is_shown_or_written(simperf, read, tmp_path):
    assert simperf("calibrate", "kernels", "truth", "l40s") == (0, "# l40s: ['call']\n", "")
    code, out, err = simperf("calibrate", "kernels", "truth", "l40s", "-o", "l40s.toml")
    assert (code, out) == (0, "")
    assert "wrote l40s.toml" in err
    assert (tmp_path / "l40s.toml").read_text() == "# l40s: ['call']\n"
    assert [str(folder) for folder in read] == ["truth", "truth"]


def test_a_file_that_is_no_profile_is_refused_before_anything_is_read(simperf, read):
    code, _, err = simperf("calibrate", "kernels", "truth", "l40s", "-o", "l40s.csv")
    assert code == 2
    assert "l40s.csv" in err
    assert not read
