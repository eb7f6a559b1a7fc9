"""Several sessions of one machine: pooled readings, and intervals that know how far sessions are apart."""

from dataclasses import replace

import numpy as np
import pytest

from simperf.calibrate.dataset import Dataset, Measurement
from simperf.calibrate.fit import fit_dataset
from simperf.calibrate.sessions import parts, pool
from simperf.calibrate.validate import validate
from simperf.errors import InputError
from simperf.hardware import Catalog
from tests.calibrate.left_out import repeated
from tests.calibrate.synthetic import write_profile

MACHINE = {"cpu": "a processor", "cores": 2}


def session(seed, pace, *, touched=(0.0, 1e6, 1e7, 3e7, 6e7, 1e8, 3e8), noise=0.02, series="frontend/mixed"):
    """Points of ``frontend/mixed`` of a machine whose calls take `pace` times as long today."""
    rng = np.random.default_rng(seed)
    points = []
    for size in touched:
        time = pace * (1e-5 + 4e-5 / (1.0 + (3e7 / max(size, 1.0)) ** 3))
        at = {"device": "cpu", "threads": 2, "pass": "forward", "touched": size}
        points.append(Measurement(series, at, tuple(time * np.exp(noise * rng.standard_normal(9)))))
    return Dataset("a machine", MACHINE, {"torch": "2"}, {"seconds": 10.0}, tuple(points))


def test_pooled_points_keep_their_faster_readings_and_the_sessions_are_known():
    sessions = [session(1, 1.0, series="frontend/add"), session(2, 1.1, series="frontend/add")]
    found = pool(sessions)
    assert {len(point.samples) for point in found} == {15}  # four in five of 18
    for point, *own in zip(found, *sessions, strict=True):
        assert point.samples == tuple(sorted(own[0].samples + own[1].samples)[:15])
    assert found.made["sessions"] == 2
    assert found.made["seconds"] == 20.0
    assert parts(found) == (*parts(sessions[0]), *parts(sessions[1]))
    assert pool(sessions[:1]) is sessions[0]


def test_of_single_runs_and_of_other_things_than_times_all_readings_count():
    for series, unit in (("queue/depth", "launches"), ("frontend/mixed", "s"), ("step/lenet", "s")):
        sessions = [Dataset("a machine", measurements=(Measurement(series, {}, (each,), unit),)) for each in (1.0, 2.0)]
        assert next(iter(pool(sessions))).samples == (1.0, 2.0)


def test_a_session_that_came_back_to_a_point_often_does_not_outweigh_the_others():
    """Twelve goes of fifteen readings beside one of fifteen: the middle is between the two, not that of the many."""

    def of(time, count):
        samples = tuple(time * (1.0 + 0.001 * index) for index in range(count))
        return Dataset("a machine", measurements=(Measurement("send/left", {}, samples),))

    (found,) = pool([of(1.0, 15), of(2.0, 180)])
    assert len(found.samples) == 30
    assert 1.01 < found.median < 2.0
    few, many = found.samples[:15], found.samples[15:]
    assert few == of(1.0, 15).measurements[0].samples
    assert sorted(many)[7] == pytest.approx(of(2.0, 180).measurements[0].median, rel=1e-3)
    (alike,) = pool([of(1.0, 15), of(2.0, 40)])
    assert len(alike.samples) == 55


def disturbed(rng, *, points=200, share=0.35):
    """A session in which others make calls take longer, for stretches of 20 points, by up to a factor of two."""
    factors = np.repeat(np.where(rng.random(points // 20) < share, rng.uniform(1.2, 2.0, points // 20), 1.0), 20)
    return Dataset(
        "a machine",
        measurements=tuple(
            Measurement("op/x", {"n": n}, tuple(1e-6 * n * factor * np.exp(0.02 * rng.standard_normal(9))))
            for n, factor in enumerate(factors, 1)
        ),
    )


def test_what_is_pooled_says_more_of_another_session_than_the_middle_of_all_readings_does():
    rng = np.random.default_rng(7)
    errors = {"pooled": [], "middle": []}
    for _ in range(10):
        *known, later = [disturbed(rng) for _ in range(5)]
        for pooled, *own in zip(pool(known), *known, later, strict=True):
            readings = [sample for point in own[:-1] for sample in point.samples]
            guesses = {"pooled": pooled.median, "middle": np.median(readings)}
            for name, guess in guesses.items():
                errors[name].append(abs(guess / own[-1].median - 1.0))
    means = {name: np.mean(each) for name, each in errors.items()}
    assert means["pooled"] < 0.9 * means["middle"]


def test_what_the_other_sessions_say_is_told_by_series():
    rng = np.random.default_rng(2)
    sessions = [disturbed(rng, share=0.0), disturbed(rng, share=0.0), disturbed(rng, share=1.0)]
    errors = {(one.session, one.series): one.error for one in repeated(sessions)}
    assert list(errors) == [(0, "op/x"), (1, "op/x"), (2, "op/x")]
    assert errors[0, "op/x"] < 0.03  # two of three are quiet, and the faster readings are theirs
    assert errors[2, "op/x"] > 0.25
    assert repeated(sessions[:1]) == ()


def test_other_machines_and_versions_are_not_pooled_and_all_differences_are_told():
    other = replace(session(2, 1.0), machine={"cpu": "another", "cores": 4}, versions={"torch": "3"})
    with pytest.raises(InputError) as caught:
        pool([session(1, 1.0), other])
    assert len(caught.value.problems) == 3
    assert "another" in str(caught.value)
    assert "torch" in str(caught.value)


def test_intervals_of_pooled_sessions_hold_a_session_that_was_not_fitted(tmp_path):
    rng = np.random.default_rng(5)
    inside = {True: [], False: []}
    for trial in range(12):
        paces = np.exp(0.15 * rng.standard_normal(5))
        *known, later = [session(100 * trial + i, pace) for i, pace in enumerate(paces)]
        for told in inside:
            fits = fit_dataset(pool(known), sessions=known if told else ())
            write_profile(tmp_path / "profile.toml", fits, made={"parts": " ".join(parts(pool(known)))})
            profile = Catalog.load().profile(str(tmp_path / "profile.toml"))
            checked = validate(profile, later)
            assert not any(point.fitted for point in checked.points)
            assert all(point.fitted for point in validate(profile, known[0]).points)
            inside[told] += [point.inside for point in checked.points]
    assert np.mean(inside[True]) > 0.75
    assert np.mean(inside[False]) < 0.6


def test_draws_of_a_profile_are_sessions_in_which_all_times_are_longer_together(tmp_path):
    sessions = [session(1, 0.8), session(2, 1.0), session(3, 1.25)]
    write_profile(tmp_path / "profile.toml", fit_dataset(pool(sessions), sessions=sessions))
    model = Catalog.load().profile(str(tmp_path / "profile.toml")).model["call.mixed.forward"]
    assert model.between > 0.15
    hot, late = (np.array([model.at(draw)[key] for draw in range(1, 33)]) for key in ("hot", "late"))
    assert np.corrcoef(np.log(hot), np.log(late))[0, 1] > 0.9
    assert np.log(hot).std() == pytest.approx(model.between, rel=0.3)
    assert np.std([model.at(draw)["late_at"] for draw in range(1, 33)]) < 0.1 * model.at()["late_at"]
