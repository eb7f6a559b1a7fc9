"""Tables of built-in names: complete, each name in the module that registers it, and only that one imported."""

import subprocess
import sys
from importlib import import_module
from pkgutil import iter_modules

import pytest

from simperf.collectives.algorithms import ALGORITHMS
from simperf.errors import SimperfError, UnknownNameError
from simperf.programs import PROGRAMS
from simperf.registry import Registry
from simperf.scenario import load_scenario
from simperf.workload.registry import OP_KINDS

BUILT_IN = {"simperf.programs": PROGRAMS, "simperf.collectives.plans": ALGORITHMS, "simperf.workload.kinds": OP_KINDS}


@pytest.mark.parametrize("package", BUILT_IN)
def test_the_table_has_every_name_that_a_module_registers(package):
    registry = BUILT_IN[package]
    for module in iter_modules(import_module(package).__path__):
        import_module(f"{package}.{module.name}")
    homes = {}
    for name, entry in registry._entries.items():
        homes[name] = getattr(entry, "function", entry).__module__
    built_in = {name: home.rpartition(".")[2] for name, home in homes.items() if home.startswith(f"{package}.")}
    assert {name: home for name, home in built_in.items() if home in registry.modules.values()} == registry.modules
    assert registry is ALGORITHMS or built_in == registry.modules  # whose package is searched for files, too


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """A package whose modules register fruit, and the registry of it."""
    folder = tmp_path / "fruit_shop"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "from simperf.registry import Registry\n"
        "FRUIT = Registry('fruit', package='fruit_shop', group='', modules={'apple': 'tree', 'kiwi': 'vine'})\n"
    )
    for module, name in (("tree", "apple"), ("vine", "kiwi")):
        text = f"from fruit_shop import FRUIT\nFRUIT.add({name!r}, {name.upper()!r})\n"
        (folder / f"{module}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield import_module("fruit_shop").FRUIT
    for name in [name for name in sys.modules if name.partition(".")[0] in ("fruit_shop", "berry")]:
        del sys.modules[name]


def test_a_name_imports_its_module_alone(shop):
    assert shop["apple"] == "APPLE"
    assert "fruit_shop.tree" in sys.modules
    assert "fruit_shop.vine" not in sys.modules


def test_all_names_are_known_without_an_import(shop):
    assert list(shop) == ["apple", "kiwi"]
    assert len(shop) == 2
    assert "kiwi" in shop
    assert "fruit_shop.tree" not in sys.modules


def test_a_built_in_name_cannot_be_taken(shop):
    with pytest.raises(SimperfError, match="registered twice"):
        shop.add("kiwi", "another")
    assert shop["kiwi"] == "KIWI"
    shop.add("plum", "PLUM")
    assert list(shop) == ["apple", "kiwi", "plum"]


def test_an_unknown_name_is_told_with_the_nearest(shop):
    with pytest.raises(UnknownNameError, match="kiwi"):
        shop["kivi"]


def test_a_file_beside_those_of_the_table_is_found(shop, tmp_path):
    (tmp_path / "fruit_shop" / "hedge.py").write_text("from fruit_shop import FRUIT\nFRUIT.add('plum', 'PLUM')\n")
    found = Registry("fruit", package="fruit_shop", group="", modules=shop.modules, discover=True)
    assert "fruit_shop.hedge" not in sys.modules
    assert "apple" in found
    assert "fruit_shop.hedge" not in sys.modules
    list(found)
    assert shop["plum"] == "PLUM"


def test_a_registry_without_a_table_imports_its_package():
    registry = Registry("nothing", package="simperf.collectives.plans", group="")
    assert list(registry) == []


def test_temporary_entries_end_with_their_block(shop, tmp_path, monkeypatch):
    (tmp_path / "berry.py").write_text("BERRY = 'BERRY'\n")
    found = Registry("fruit", package="fruit_shop", group="fruit", modules=shop.modules)
    monkeypatch.setattr("fruit_shop.FRUIT", found)
    assert list(found) == ["apple", "kiwi"]
    with pytest.raises(KeyError), found.temporary_entries(plum="PLUM"):
        info = tmp_path / "berry-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: berry\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("[fruit]\nberry = berry:BERRY\n")
        found.add("pear", "PEAR")
        assert list(found) == ["apple", "berry", "kiwi", "pear", "plum"]
        raise KeyError
    assert list(found) == ["apple", "kiwi"]
    assert found["kiwi"] == "KIWI"  # its module, is imported once


#: scenario -> most modules of the package that its run may import
MOST = {"d2l/async": 105, "d2l/sync-160mb": 155, "d2l/copy-overlap": 130}


@pytest.mark.parametrize("scenario", MOST)
def test_a_run_imports_what_it_plays_and_no_more(scenario):
    code = (
        "import sys; from simperf.cli import main; code = main(['run', sys.argv[1]]); "
        "print(*(name for name in sys.modules if name.partition('.')[0] == 'simperf'), sep='\\n', file=sys.stderr); "
        "sys.exit(code)"
    )
    command = [sys.executable, "-c", code, scenario]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    names = {name for name in done.stderr.split("\n") if name.startswith("simperf")}
    assert {"simperf.cli.run", "simperf.engine.simulation"} <= names
    assert not [name for name in names if name.startswith(("simperf.calibrate", "simperf.study", "simperf.accuracy"))]
    program = load_scenario(scenario).program
    others = {f"simperf.programs.{home}" for name, home in PROGRAMS.modules.items()} - {program.function.__module__}
    assert not names & others
    assert len(names) < MOST[scenario], sorted(names)
