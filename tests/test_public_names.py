"""Public names of a package: loaded from their modules on first use."""

import sys

import pytest

PACKAGE = """
from simperf.public_names import public_names

__getattr__, __dir__ = public_names(__name__, {"prices": ("Price", "total"), "verdict": ("verdict",)})
"""
MODULES = {
    "prices": "class Price:\n    pass\n\n\ndef total():\n    return 3\n",
    "verdict": "def verdict():\n    return 'fair'\n",
}


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """A package of two modules, of which none is loaded yet; one of them is named as what it provides."""
    folder = tmp_path / "public_names_shop"
    folder.mkdir()
    (folder / "__init__.py").write_text(PACKAGE)
    for name, text in MODULES.items():
        (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    yield __import__("public_names_shop")
    for name in [name for name in sys.modules if name.partition(".")[0] == "public_names_shop"]:
        del sys.modules[name]


def test_a_module_is_loaded_by_the_first_name_of_it(shop):
    assert "public_names_shop.prices" not in sys.modules
    assert shop.total() == 3
    assert "public_names_shop.prices" in sys.modules
    assert "public_names_shop.verdict" not in sys.modules
    assert shop.__dict__["total"] is shop.total, "it is kept"


def test_names_are_listed(shop):
    assert dir(shop) == ["Price", "total", "verdict"]


def test_a_wrong_name_offers_the_nearest(shop):
    with pytest.raises(AttributeError, match=r"no name 'totl'.*total"):
        shop.totl  # noqa: B018
    assert not hasattr(shop, "nothing")


def test_a_name_that_is_also_its_modules_stays_what_the_module_provides(shop):
    import public_names_shop.verdict  # noqa: F401

    assert shop.verdict() == "fair"
