"""The catalog reads only what is asked for, and each thing once."""

import subprocess
import sys
from dataclasses import replace

from simperf.hardware import Catalog
from simperf.hardware import part_catalog as module


def test_only_what_is_asked_for_is_read(monkeypatch):
    read = []
    real = module.read_toml
    module._read.cache_clear()
    monkeypatch.setattr(module, "read_toml", lambda path: read.append(path) or real(path))
    catalog = Catalog.load()
    assert read == []
    catalog.gpu("l4")
    catalog.gpu("l4")
    assert [path.rsplit("/", 1)[1] for path in read] == ["l4.toml", "ada.toml"]


def test_a_part_is_one_object():
    catalog = Catalog.load()
    assert catalog.gpu("l4") is catalog.gpu("l4")
    assert catalog.machine("dgx-1v") is catalog.machine("dgx-1v")
    assert catalog.gpu("l4") == Catalog.load().gpu("l4")
    assert len({catalog.gpu("l4"), Catalog.load().gpu("l4")}) == 1


def test_what_if_leaves_the_catalog_as_it_was():
    catalog = Catalog.load()
    slow = catalog.with_part(replace(catalog.link("pcie3-x16"), protocol_efficiency=0.435))
    before = catalog.machine("pcie-4gpu").route("gpu0", "gpu1").bandwidth
    assert slow.machine("pcie-4gpu").route("gpu0", "gpu1").bandwidth * 2 == before
    assert catalog.machine("pcie-4gpu").route("gpu0", "gpu1").bandwidth == before


def test_names_and_kinds():
    catalog = Catalog.load()
    assert catalog.names("gpu") == tuple(sorted(catalog.names("gpu")))
    assert catalog.kinds_of("infiniband-hdr") == ("link", "nic")
    assert catalog.path("gpu", "l4").endswith("gpu/l4.toml")


def test_building_a_server_imports_no_heavy_library():
    code = (
        "import sys; from simperf.hardware import Catalog; Catalog.load().machine('dgx-1v');"
        "heavy = ('networkx', 'numpy', 'matplotlib', 'scipy', 'pandas', 'torch', 'simpy');"
        "print([name for name in heavy if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
