"""Lines that are told apart: thirteen colours, marks and dashes, and lines that coincide."""

from itertools import combinations

import numpy as np
import pytest

from simperf.analysis.scaling import Scaled, ScalingCurve
from simperf.report.labels import name_points
from simperf.report.lines import PALETTE, coinciding, line_look
from simperf.report.scaling import draw_scaling
from simperf.report.style import figure

#: linear RGB as it is seen without one kind of cone: G. M. Machado et al., A Physiologically-based Model for Simulation
#: of Color Vision Deficiency, IEEE TVCG 15(6), 2009, severity 1.0
VISIONS = {
    "normal": np.eye(3),
    "no red": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "no green": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "no blue": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
#: linear sRGB to CIE XYZ (IEC 61966-2-1), white D65
XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)


def lab(color, vision):
    """CIE L*a*b* of a colour such as ``"#0072B2"`` as it is seen."""
    srgb = np.array([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    share = XYZ @ np.clip(np.array(vision) @ linear, 0, 1) / (XYZ @ np.ones(3))
    x, y, z = np.where(share > 216 / 24389, np.cbrt(share), (24389 / 27 * share + 16) / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def test_the_distance_is_that_of_known_colours():
    assert lab("#FFFFFF", VISIONS["normal"]) == pytest.approx([100, 0, 0], abs=0.01)
    assert lab("#FF0000", VISIONS["normal"]) == pytest.approx([53.24, 80.09, 67.20], abs=0.05)


@pytest.mark.parametrize("vision", VISIONS)
def test_thirteen_colours_are_told_apart(vision):
    assert len(PALETTE) == 13
    seen = {color: lab(color, VISIONS[vision]) for color in PALETTE}
    least = min(combinations(PALETTE, 2), key=lambda pair: np.linalg.norm(seen[pair[0]] - seen[pair[1]]))
    assert np.linalg.norm(seen[least[0]] - seen[least[1]]) >= 16, least
    assert all(one[0] <= 77 for one in seen.values())  # none is lost on white paper


def test_fifty_two_lines_differ_in_colour_mark_or_dash():
    looks = [line_look(number) for number in range(52)]
    assert len({(look["color"], look["marker"], look["linestyle"]) for look in looks}) == 52
    assert len({look["marker"] for look in looks[:13]}) == 13


def _curve(label, *efficiencies):
    points = tuple(Scaled(2**i, 1 / share, 1.0) for i, share in enumerate(efficiencies))
    return ScalingCurve("gpus", label, "time per step", "constant", points)


def test_efficiencies_that_coincide_are_seen_and_said():
    made = draw_scaling(
        [_curve("ring", 1.0, 0.9, 0.8), _curve("tree", 1.0, 0.901, 0.8), _curve("other", 1.0, 0.7, 0.6)]
    )
    ring, tree, other = made.axes[1].get_lines()[:3]
    assert ring.get_linewidth() >= 2 * tree.get_linewidth()
    assert ring.get_zorder() < tree.get_zorder()
    assert other.get_linewidth() == tree.get_linewidth()
    assert "drawn inside one another: ring, tree" in " ".join(made.get_supxlabel().split())


def test_lines_at_other_places_do_not_coincide():
    assert coinciding({"a": ([1, 2], [1.0, 1.0]), "b": ([1, 4], [1.0, 1.0])}) == []


def test_names_of_points_do_not_overlap_each_other_nor_points():
    places = [(0.5 + 0.01 * i, 0.5 + 0.002 * i) for i in range(12)]

    def draw(made):
        axes = made.subplots()
        axes.plot(*zip(*places, strict=True), "o")
        axes.set(xlim=(0, 1), ylim=(0, 1))
        name_points(axes, [(f"candidate {i}", place) for i, place in enumerate(places)], places)

    made = figure(draw)
    made.draw_without_rendering()
    renderer = made.canvas.get_renderer()
    boxes = [text.get_window_extent(renderer) for text in made.axes[0].texts]
    assert 1 <= len(boxes) < 12
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    spots = made.axes[0].transData.transform(places)
    assert not any(box.contains(*spot) for box in boxes for spot in spots)
    assert f"no room are left out: {12 - len(boxes)}." in made.get_supxlabel()
