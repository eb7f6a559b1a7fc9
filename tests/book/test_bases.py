"""A shipped scenario plays as it stands, which is what `simperf run NAME` does; tests beside this play its variants.

Those of measurements are many of one kind (one table of a publication is a scenario for each GPU), so that one
stands for those that begin and end alike.
"""

import pytest

from simperf.errors import DeviceMemoryError
from simperf.files import read_toml
from simperf.run import run
from simperf.scenario import load_scenario, shipped_scenarios

#: what does not fit, in order to show how that is told
TOO_LARGE = "training/out-of-memory"


def _alike(name):
    folder, stem = name.split("/")
    words = stem.split("-")
    return (folder, words[0], words[-1]) if folder == "measured" else (folder, stem)


#: those with variants: one without is played by `test_scenarios`
SHIPPED = {name: path for name, path in shipped_scenarios().items() if "compare" in read_toml(path).data}
PLAYED = sorted({_alike(name): name for name in reversed(SHIPPED)}.values())


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.long if name.startswith("measured/") else ())
        for name in PLAYED
        if name != TOO_LARGE
    ],
)
def test_a_base_plays(name):
    result = run(load_scenario(SHIPPED[name]), record=False)
    assert result.time > 0
    assert result.floor[1] <= result.time * (1 + 1e-9)


def test_what_does_not_fit_says_so():
    with pytest.raises(DeviceMemoryError, match="gpu0 is out of memory: 256 samples need"):
        run(load_scenario(SHIPPED[TOO_LARGE]), record=False)


def test_every_folder_is_played():
    assert {name.split("/")[0] for name in PLAYED} == {"d2l", "large", "measured", "training"}
    assert {name for name in SHIPPED if not name.startswith("measured/")} <= set(PLAYED)
