"""Machine tables: what they may say, and every way to get them wrong."""

import pytest

from simperf.errors import InputError
from simperf.files import read_toml
from simperf.hardware import Catalog, build_machine
from simperf.hardware.wiring import expand, zipped

GOOD = """[machine]
[[machine.node]]
id = "gpu{0..3}"
gpu = "v100-sxm2-16gb"
[[machine.node]]
id = "plx0"
switch = "plx-8796"
[[machine.node]]
id = "cpu0"
cpu = "xeon-e5-2698v4"
[[machine.link]]
a = "gpu{0..3}"
b = "plx0"
part = "pcie3-x16"
[[machine.link]]
a = "plx0"
b = "cpu0"
part = "pcie3-x16"
"""


def build(folder, text):
    path = folder / "scenario.toml"
    path.write_text(text)
    toml = read_toml(path)
    return build_machine(toml.data["machine"], Catalog.load(), toml)


def test_the_table_is_a_machine(tmp_path):
    machine = build(tmp_path, GOOD)
    assert machine.gpus == ("gpu0", "gpu1", "gpu2", "gpu3")
    assert machine.route("gpu0", "gpu3").nodes == ("gpu0", "plx0", "gpu3")


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ("v100-sxm2-16gb", "v100-sxm2-16g", 4, "did you mean 'v100-sxm2-16gb'"),
        ("plx-8796", "plx-8797", 7, "did you mean 'plx-8796'"),
        ('b = "plx0"\npart', 'b = "plx1"\npart', 13, "no node; did you mean 'plx0'"),
        ('b = "plx0"\npart', 'b = "gpu{0..3}"\npart', 11, "both ends of the link are 'gpu0'"),
        ('b = "plx0"\npart', 'b = "gpu{1..3}"\npart', 11, "equal in number, or one of them 1: 4 and 3"),
        ('part = "pcie3-x16"\n[[', 'part = "pcie3-x17"\n[[', 14, "or 'pcie3-x16'"),
        ('part = "pcie3-x16"\n[[', "[[", 11, "a link has a part"),
        ('part = "pcie3-x16"\n[[', 'part = "pcie3-x16"\nbandwidth = "3"\n[[', 15, "unit is missing"),
        ('part = "pcie3-x16"\n[[', 'part = "pcie3-x16"\nlatency = "3 GB"\n[[', 15, "unit of size"),
        ('part = "pcie3-x16"\n[[', 'part = "pcie3-x16"\nlength = "3 km"\n[[', 15, "no velocity"),
        ('part = "pcie3-x16"\n[[', 'part = "pcie3-x16"\ncount = 0\n[[', 15, "at least 1 is expected"),
        ('part = "pcie3-x16"\n[[', 'part = "nvlink2"\ncount = 7\n[[', 2, "a NVIDIA Tesla V100 SXM2 16 GB has 6"),
        ('id = "gpu{0..3}"', 'id = "gpu{3..0}"', 3, "no range"),
        ('id = "gpu{0..3}"', 'id = "gpu{0..3}{0..1}"', 3, "two ranges"),
        ('id = "gpu{0..3}"', 'id = "gpu 0"', 3, "no name"),
        ('id = "gpu{0..3}"', 'id = "gpu{0..4}"', 2, "the gpu 'gpu4' is not wired"),
        ('id = "plx0"', 'id = "gpu0"', 6, "defined twice, as v100-sxm2-16gb and as plx-8796"),
        ('switch = "plx-8796"', 'switch = "plx-8796"\nkind = "switch"', 5, "exactly one thing"),
        ('switch = "plx-8796"', 'kind = "swich"', 7, "did you mean 'switch'"),
        ('switch = "plx-8796"', "", 5, "exactly one thing"),
        ('switch = "plx-8796"', 'swtich = "plx-8796"', 7, "did you mean 'switch'"),
        ("plx-8796", "plx-8747", 2, None),
        ('a = "plx0"\nb = "cpu0"', 'a = "gpu0"\nb = "plx0"', 15, "linked twice"),
        ("[machine]\n", "[machine]\npeer_acces = true\n", 2, "did you mean 'peer_access'"),
        ("[machine]\n", '[machine]\npeer_access = "yes please"\n', 2, "true or false"),
    ],
)
def test_broken_tables(tmp_path, old, new, line, says):
    assert old in GOOD
    text = GOOD.replace(old, new, 1)
    if says is None:  # five ports are enough for four GPUs and a CPU
        build(tmp_path, text)
        return
    with pytest.raises(InputError) as caught:
        build(tmp_path, text)
    problem = next((row for row in caught.value.problems if says in str(row)), None)
    assert problem is not None, str(caught.value)
    assert problem.line == line, str(problem)
    assert problem.key.startswith("machine")


def test_islands_are_named(tmp_path):
    nics = '[[machine.node]]\nid = "nic{0..1}"\nkind = "nic"\n'
    island = GOOD + nics + '[[machine.link]]\na = "nic0"\nb = "nic1"\nbandwidth = "1 GB/s"\n'
    with pytest.raises(InputError, match="no link joins nic0, nic1 to gpu0"):
        build(tmp_path, island)


def test_too_many_links_on_a_switch(tmp_path):
    with pytest.raises(InputError, match="has 24 ports"):
        build(tmp_path, GOOD.replace("{0..3}", "{0..29}"))


CLUSTER = '[machine]\nserver = "dgx-1v"\n[machine.fabric]\ntype = "star"\nlink = "infiniband-hdr"\n'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[machine]\nname = "dgx-1w"\n', "did you mean"),
        ('[machine]\nname = "dgx-1v"\ncount = 3\n', "unknown key beside the name"),
        ("[machine]\n", "missing"),
        (CLUSTER.replace("link", "#"), "a fabric has a link"),
        (CLUSTER.replace('server = "dgx-1v"', "count = 2"), "either server"),
        (CLUSTER.replace("dgx-1v", "dgx-1w"), "did you mean"),
        (CLUSTER.replace("dgx-1v", "book-4gpu"), "no NIC"),
        (CLUSTER.replace('"star"', '"sta"'), "did you mean 'star'"),
        (CLUSTER + "oversubscription = 0.5\n", "at least 1.0"),
        (CLUSTER + "servers_per_leave = 5\n", "did you mean 'servers_per_leaf'"),
        (CLUSTER.replace("hdr", "hdrr"), "did you mean"),
        (CLUSTER + 'uplink = "x"\n', "unknown link"),
        (CLUSTER + 'switch = "x"\n', "unknown switch"),
    ],
)
def test_broken_references(tmp_path, text, says):
    with pytest.raises(InputError, match=says):
        build(tmp_path, text)


def test_a_name_and_a_cluster_in_a_scenario(tmp_path):
    assert build(tmp_path, '[machine]\nname = "dgx-1v"\n').name == "dgx-1v"
    text = '[machine]\nserver = "dgx-1v"\ncount = 2\n[machine.fabric]\ntype = "star"\nlink = "infiniband-edr"\n'
    assert len(build(tmp_path, text).gpus) == 16


def test_a_wrong_part_is_said_with_both_files(tmp_path):
    own = tmp_path / "parts"
    own.mkdir()
    (own / "mine.toml").write_text('kind = "nic"\ntitle = "x"\n')
    path = tmp_path / "scenario.toml"
    path.write_text(GOOD + '[[machine.node]]\nid = "nic0"\nnic = "mine"\n')
    toml = read_toml(path)
    with pytest.raises(InputError) as caught:
        build_machine(toml.data["machine"], Catalog.load(own), toml)
    assert {row.file for row in caught.value.problems} == {str(path), str(own / "mine.toml")}


def test_ranges():
    assert expand("n{0..2}x") == ["n0x", "n1x", "n2x"]
    assert expand("p{1,1,0..1,a}") == ["p1", "p1", "p0", "p1", "pa"]
    assert zipped(["a"], ["b", "c"]) == [("a", "b"), ("a", "c")]
    for wrong in ("x{}", "x{0-3}", "x{0..1000000}", "0x", "a b", "x{a b}"):
        with pytest.raises(ValueError, match=r"is no (name|range)"):
            expand(wrong)
