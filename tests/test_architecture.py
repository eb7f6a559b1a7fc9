"""The check of imports, signatures and names of classes finds every kind of defect, and none in the package."""

import pytest

from tests.architecture import MOST, ROOT, circles, long_signatures, main, private_reads, shared_names


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
    assert (
        capsys.readouterr().out
        == "0 groups of circular imports, 0 functions of more than 10 parameters, 0 shared names of classes, "
        "0 reads of private names\n"
    )


def test_the_package_has_no_circle():
    assert circles(ROOT / "simperf") == []


NAMES = ", ".join(f"p{i}" for i in range(MOST))


@pytest.mark.parametrize(
    "signature",
    [f"{NAMES}, more", f"{NAMES}, *, more", f"more, /, {NAMES}", f"{NAMES}, *more", f"{NAMES}, **more"],
)
def test_a_signature_that_is_too_long_is_found_wherever_its_parameters_stand(tmp_path, signature, capsys):
    folder = package(tmp_path, one=f"class A:\n    async def f(self, {signature}): ...")
    (told,) = long_signatures(folder)
    assert told == "shop/one.py:2 f has 11 parameters, 10 at most"
    assert main([str(folder)]) == 1
    assert told in capsys.readouterr().out


def test_signatures_that_may_be_long_are_not_told(tmp_path):
    method = f"class A:\n    def f(self, {NAMES}, **removed): ..."
    assert long_signatures(package(tmp_path, one=method, cli__dot__run=f"def f({NAMES}, more): ...")) == []


def test_the_package_has_no_long_signature():
    assert long_signatures(ROOT / "simperf") == []


def test_a_name_of_two_classes_is_found(tmp_path, capsys):
    folder = package(
        tmp_path, one="class Link: ...", two="import os\nclass Link: ...\nclass _Own: ...", three="class _Own: ..."
    )
    (told,) = shared_names(folder)
    assert told == "class Link has 2 meanings: shop/one.py:1, shop/two.py:2"
    assert main([str(folder)]) == 1
    assert told in capsys.readouterr().out


def test_each_class_of_the_package_has_a_name_of_its_own():
    assert shared_names(ROOT / "simperf") == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("from shop.stock import _count", ":1 reads _count of shop.stock"),
        ("from shop import stock\n\n\ndef test():\n    stock._count()", ":5 reads _count of shop.stock"),
        ("import shop.stock as s\n\nx = s._count", ":3 reads _count of shop.stock"),
        ("import shop.stock\n\nx = shop.stock.Stock._count", ":3 reads _count of shop.stock.Stock"),
        ("def test():\n    x = STOCK._count\n\n\nfrom shop.stock import STOCK", ":2 reads _count of shop.stock.STOCK"),
        ("def test(patch):\n    patch.setattr('shop.stock._count', 1)", ":2 reads _count of shop.stock"),
        ("def test(patch):\n    patch.setattr('shop.stock.Stock._count', 1)", ":2 reads _count of shop.stock.Stock"),
        ("from shop import stock\n\nsetattr(stock, '_count', 1)", ":3 reads _count of shop.stock"),
        ("from shop.stock import Stock\n\npatch.delattr(Stock, '_count')", ":3 reads _count of shop.stock.Stock"),
        ("from shop.stock import STOCK\n\npatch.setitem(STOCK._all, 'a', 1)", ":3 reads _all of shop.stock.STOCK"),
        ("from shop.till import TILL\n\npatch.setattr(TILL, '_total', 1)\npatch.delattr('shop.till._total')", None),
        ("from shop.till import _total\nfrom shop.stock import count", None),
    ],
)
def test_a_private_name_of_another_package_is_found(tmp_path, text, told):
    folder = package(tmp_path, till="", stock="")
    tests = tmp_path / "tests"
    (tests / "till").mkdir(parents=True)
    (tests / "till" / "test_till.py").write_text(text)
    assert private_reads(folder, tests) == ([] if told is None else [f"tests/till/test_till.py{told}"])


def test_a_private_name_of_another_module_of_the_package_is_found(tmp_path):
    folder = package(tmp_path, stock="_count = 1\n_count += 1", till="def later():\n    from shop.stock import _count")
    assert private_reads(folder, tmp_path / "tests") == ["shop/till.py:2 reads _count of shop.stock"]


def test_no_module_and_no_test_reads_private_names_of_another():
    assert private_reads(ROOT / "simperf", ROOT / "tests") == []
