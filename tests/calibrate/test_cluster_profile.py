"""A boxed cluster's constants as a profile: made of recordings, written, read, held against another recording."""

import json
import math
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
from typer.testing import CliRunner

from simperf.accuracy import recordings as accuracy_recordings
from simperf.calibrate.cluster.experiments import points
from simperf.calibrate.cluster.fitting import fit_constants
from simperf.calibrate.cluster.profile import (
    boxed_models,
    draw_of,
    hold_profile,
    is_box,
    predict_points,
    validation_of,
)
from simperf.calibrate.cluster.scenarios import scenario
from simperf.calibrate.cluster.shape import Shape
from simperf.calibrate.dataset import Dataset
from simperf.calibrate.profile import models_text
from simperf.calibrate.sessions import parts, pool
from simperf.cli.app import app
from simperf.errors import InputError
from simperf.hardware import Catalog
from simperf.run import run
from simperf.scenario import make_scenario

FOLDER = Path(__file__).parents[2] / "calibration"


def recording(name):
    """What constants are fitted to, training steps, and some all-reduces over up to four hosts."""
    data = Dataset.load(FOLDER / f"boxed-cluster-zen5-2c{name}.json.gz")
    kept = tuple(
        point
        for point in data
        if not point.series.startswith(("all-reduce/", "ddp", "server/"))
        or (point.series == "all-reduce/ring" and point.at["ranks"] in (2, 4) and point.at["nbytes"] <= 1 << 20)
    )
    return replace(data, measurements=kept)


@pytest.fixture(scope="module")
def recordings():
    return [recording("-later"), recording("-fourth")]


@pytest.fixture(scope="module")
def models(recordings):
    return boxed_models(recordings, samples=6)


def written(data, models):
    return models_text(data, models, points=models["network-stack"].points, made={"parts": " ".join(parts(data))})


@pytest.fixture(scope="module")
def profile(models, recordings, tmp_path_factory):
    file = tmp_path_factory.mktemp("boxed") / "boxed.toml"
    file.write_text(written(pool(recordings), models))
    return Catalog.load().profile(str(file))


def test_the_file_holds_what_was_fitted(profile, recordings):
    found, fitted = draw_of(profile), fit_constants(pool(recordings)).stack
    assert found.stack == pytest.approx(fitted, rel=1e-6)
    assert set(found.compute) == {"mlp-8x512", "mlp-8x256"}
    assert found.compute["mlp-8x512"].layers == 8


def test_draws_are_of_one_recording_after_the_other(profile, recordings):
    """Even draws are fits to the second recording, odd ones to the first: their medians lie as those do."""
    assert profile.draws == 6
    alone = [fit_constants(one).stack["call"] for one in recordings]
    drawn = [draw_of(profile, draw).stack["call"] for draw in range(1, 7)]
    for number in (0, 1):
        assert sorted(drawn[number::2])[1] == pytest.approx(alone[number], rel=0.05)


def test_the_same_seed_gives_the_same_bytes(recordings):
    one, same, other = (boxed_models(recordings[:1], samples=2, seed=seed) for seed in (1, 1, 2))
    assert written(recordings[0], one) == written(recordings[0], same)
    assert written(recordings[0], one) != written(recordings[0], other)


def test_a_recording_that_was_not_seen_lies_within_a_few_per_cent(profile):
    rows = hold_profile(profile, recording(""))
    assert not any(row.fitted for row in rows)
    rings = [row for row in rows if row.group == "ring"]
    assert len(rings) > 10
    assert sum(abs(row.error) for row in rings) / len(rings) < 0.05
    assert all(row.interval[0] <= row.predicted <= row.interval[1] for row in rows)
    assert sum(row.covered for row in rows) / len(rows) > 0.6
    assert all(row.plain is not None for row in rings)


def test_points_that_were_fitted_are_told_apart(profile, recordings):
    rows = hold_profile(profile, pool(recordings))
    assert {row.point.series for row in rows if row.fitted} == {"send", "round-trip", "send-train"}
    found = validation_of(rows)
    assert found.held_out.points == sum(not row.fitted for row in rows)
    assert {one.series for one in found.points} == {row.group for row in rows}


def test_intervals_are_made_of_what_the_others_say(recordings, models):
    """A recording whose rings take 1.5 times as long: each is missed by that from the other one."""
    slow = tuple(
        replace(point, samples=tuple(1.5 * one for one in point.samples))
        if point.series == "all-reduce/ring"
        else point
        for point in recordings[0]
    )
    found = boxed_models([replace(recordings[0], measurements=slow), recordings[1]], samples=2)
    ratio, usual = (one["boxed.miss.ring"].constant["ratio"] for one in (found, models))
    assert ratio.high > 1.5
    assert usual.high < 1.3


def test_a_less_steady_recording_gets_wider_intervals_where_links_are_free(profile):
    """Its own sends say so, whose readings alone are changed here: medians, and so predictions, stay what they were."""
    data = recording("")

    def shaken(point):
        if point.series not in ("send", "round-trip"):
            return point
        middle = point.median
        return replace(point, samples=tuple(middle * factor for factor in (0.85, 0.9, 1.0, 1.1, 1.15)))

    shaky = replace(data, measurements=tuple(shaken(point) for point in data))
    wider = []
    for one, other in zip(hold_profile(profile, data), hold_profile(profile, shaky), strict=True):
        assert other.predicted == one.predicted
        if one.group == "ring":
            wider.append(math.log(other.interval[1] / other.interval[0]) / math.log(one.interval[1] / one.interval[0]))
    assert min(wider) > 1.5


def test_what_was_never_measured_is_predicted(profile):
    wanted = list(points(5, Shape(rate=4e7), only=("all-reduce", "ddp"), quick=True))
    rows = predict_points(profile, wanted)
    assert len(rows) == len(wanted)
    rings = {(row.point.at["ranks"], row.point.at["nbytes"]): row for row in rows if "ring" in row.point.series}
    row = rings[5, 1 << 20]
    assert math.isnan(row.point.median)
    assert row.predicted > 2 * 4 / 5 * 2**20 / 4e7, "no ring beats its links"
    assert row.interval[0] <= row.predicted <= row.interval[1]


def test_the_shipped_profile_is_of_the_shipped_recordings():
    names = ("", "-later", "-earlier", "-fourth", "-fifth", "-sixth")
    every = pool([Dataset.load(FOLDER / f"boxed-cluster-zen5-2c{name}.json.gz") for name in names])
    shipped = Catalog.load().profile("boxed-cluster-zen5-2c")
    assert draw_of(shipped).stack == pytest.approx(fit_constants(every).stack, rel=1e-6)
    assert shipped.made["parts"] == " ".join(parts(every))


def test_the_accuracy_page_holds_the_shipped_profile_against_all_recordings(monkeypatch):
    """Those that it was fitted to together, and each one that it was not."""
    monkeypatch.setattr(accuracy_recordings, "hold_profile", lambda profile, data: ())
    (together, _), *alone = islice(accuracy_recordings.recorded(), 7)
    assert together.count("boxed-cluster") == 6
    others = ("eighth", "eleventh", "ninth", "seventh", "tenth", "twelfth")
    assert [name for name, _ in alone] == [f"boxed-cluster-zen5-2c-{name}" for name in others]


def test_data_of_other_machines_is_none_of_a_box():
    assert not is_box(Dataset.load(FOLDER / "cpu-epyc-zen5-2c-1.json.gz"))
    with pytest.raises(InputError, match="of no boxed cluster"):
        draw_of(Catalog.load().profile("cpu-epyc-zen5-2c"))


def test_fit_validate_and_predict_from_the_command_line(tmp_path, recordings):
    data, profile = tmp_path / "box.json", tmp_path / "box.toml"
    recordings[0].save(data)
    run = CliRunner().invoke
    done = run(app, ["calibrate", "fit", str(data), "-o", str(profile)])
    assert done.exit_code == 0, done.output
    assert "byte_rate" in done.output
    assert f"next: simperf calibrate validate {profile} {data}" in done.output
    done = run(app, ["calibrate", "validate", str(profile), str(data), "--format", "json"])
    assert done.exit_code == 0, done.output
    assert {"ring", "fitted sends"} <= {one["series"] for one in json.loads(done.stdout)}
    done = run(app, ["calibrate", "cluster", "--predict", str(profile), "--rate", "300mbit", "--only", "all-reduce"])
    assert done.exit_code == 0, done.output
    assert "all-reduce/ring" in done.output
    done = run(app, ["calibrate", "cluster", "--predict", str(tmp_path / "none.toml")])
    assert done.exit_code != 0


@pytest.mark.parametrize(
    ("words", "keys"),
    [
        (("fit", "DATA", "--hold-out", "3", "--gpu", "t4"), ["--gpu", "--hold-out"]),
        (("cluster", "--predict", "boxed-cluster-zen5-2c", "--fresh", "--points"), ["--fresh", "--points"]),
        (("cluster", "--predict", "boxed-cluster-zen5-2c", "--queue", "64kb"), ["--queue"]),
        (("cluster", "--predict", "boxed-cluster-zen5-2c", "--priority", "ordinary"), ["--priority"]),
    ],
)
def test_options_that_would_say_nothing_are_refused(words, keys, tmp_path, recordings):
    data = tmp_path / "box.json"
    recordings[0].save(data)
    done = CliRunner().invoke(app, ["calibrate", *(str(data) if word == "DATA" else word for word in words)])
    assert [problem.key for problem in done.exception.problems] == keys


def test_what_predict_says_is_what_run_plays_with_the_profile():
    """The same number by `predict_points`, and by a scenario that names the profile, as people write it."""
    shipped = Catalog.load().profile("boxed-cluster-zen5-2c")
    for row in predict_points(shipped, points(3, Shape(rate=4e7), only=("send", "all-reduce", "server"), quick=True)):
        data = scenario(row.point, {}, draw_of(shipped).compute, profile="boxed-cluster-zen5-2c")
        result = run(make_scenario(data))
        value = result.time if row.point.unit == "s" and "server" not in row.point.series else None
        if value is not None:
            assert value == pytest.approx(row.predicted, rel=1e-12)
        assert "network stack" in result.sources["profile boxed-cluster-zen5-2c"]


def test_the_burst_that_is_asked_for_has_an_effect():
    shipped = Catalog.load().profile("boxed-cluster-zen5-2c")
    times = [
        [
            row.predicted
            for row in predict_points(shipped, points(2, Shape(4e7, burst=size), only=("send",), quick=True))
        ]
        for size in (8192.0, 262144.0)
    ]
    assert sum(one > other for one, other in zip(*times, strict=True)) > 5
