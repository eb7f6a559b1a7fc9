"""The check of circular imports finds every kind of them, and none in the package."""

import pytest

from tests.architecture import ROOT, circles, main


def package(tmp_path, **files):
    folder = tmp_path / "shop"
    folder.mkdir()
    for name, text in {"__init__": "", **files}.items():
        path = folder / f"{name.replace('__dot__', '/')}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return folder


@pytest.mark.parametrize(
    "back",
    [
        "from shop.one import x",
        "from shop import one",
        "import shop.one",
        "from . import one",
        "from .one import x",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from shop.one import x",
        "def later():\n    from shop.one import x",
    ],
)
def test_a_circle_is_found_wherever_the_import_stands(tmp_path, back, capsys):
    folder = package(tmp_path, one="from shop.two import y", two=back)
    ((forth, found),) = circles(folder)
    assert forth == "shop/one.py:1 imports shop.two"
    assert found == f"shop/two.py:{len(back.splitlines())} imports shop.one"
    assert main([str(folder)]) == 1
    assert "shop/two.py" in capsys.readouterr().out


def test_a_circle_through_the_package_itself_is_found(tmp_path):
    folder = package(tmp_path, __init__="def load():\n    from shop.one import x", one="from shop import version")
    assert len(circles(folder)) == 1


def test_a_circle_of_three_is_one_group(tmp_path):
    folder = package(
        tmp_path, one="import shop.two", two="import shop.three", three="import shop.one", four="import shop.one"
    )
    (group,) = circles(folder)
    assert len(group) == 3


def test_imports_one_way_are_none(tmp_path, capsys):
    folder = package(
        tmp_path, one="from shop.two import y\nfrom shop.three import z", two="import shop.three", three="import os"
    )
    assert circles(folder) == []
    assert main([str(folder)]) == 0
    assert capsys.readouterr().out == "0 groups of circular imports\n"


def test_the_package_has_no_circle():
    assert circles(ROOT / "simperf") == []
