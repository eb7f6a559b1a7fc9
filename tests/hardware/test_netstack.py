"""A host's network stack as a part: what costs nothing by itself, and what a machine's table says of it."""

import math

import pytest

from simperf.errors import InputError
from simperf.hardware import Catalog, NetworkStackPart, build_machine
from simperf.hardware.netstack import Hosting, Shaping

CATALOG = Catalog.load()
HOSTS = {
    "node": [{"id": f"h{i}", "kind": "cpu", "server": f"h{i}"} for i in range(2)] + [{"id": "s", "kind": "switch"}],
    "link": [{"a": f"h{i}", "b": "s", "bandwidth": "10 MB/s"} for i in range(2)],
}


def hosting(**tables):
    return build_machine({**HOSTS, **tables}, CATALOG).hosting


def test_a_stack_costs_nothing_unless_its_file_says_so():
    part = NetworkStackPart(name="free", title="", sources={})
    times = (part.wake, part.message, part.call, part.cold, part.operation, part.header, part.word, part.window)
    assert set(times) == {0.0}
    assert {part.byte_rate, part.bulk_rate, part.add_rate, part.rate} == {math.inf}
    assert (part.efficiency, part.threads) == (1.0, 1)


def test_a_machine_without_a_table_has_no_stack_and_cores_of_its_own():
    assert hosting() == Hosting()
    assert Hosting().stack is None
    assert Hosting().shared_cores is None
    assert dict(Hosting().shaped) == {}


def test_a_table_names_a_stack_and_may_change_numbers_of_it():
    named = hosting(network_stack="linux-gloo").stack
    assert named == CATALOG.part("network-stack", "linux-gloo")
    changed = hosting(network_stack={"use": "linux-gloo", "wake": "1 ms"}).stack
    assert (changed.wake, changed.message) == (1e-3, named.message)
    assert changed.source("wake") == "the machine's table"
    assert changed.source("message") == named.source("message")


def test_links_may_have_token_buckets_at_both_ends():
    links = [{**one, "burst": "32 KiB", "peak": "1 GB/s"} for one in HOSTS["link"][:1]] + HOSTS["link"][1:]
    shaped = hosting(link=links).shaped
    assert shaped == dict.fromkeys(("h0>s", "s>h0"), Shaping(32768.0, 1e9))


@pytest.mark.parametrize(
    ("tables", "told"),
    [
        ({"network_stack": "linux-glo"}, "linux-gloo"),
        ({"network_stack": {"use": "linux-gloo", "wake": "-1 ms"}}, "wake"),
        ({"shared_cores": 0.0}, "shared_cores"),
        ({"link": [{**HOSTS["link"][0], "burst": "32 KiB"}, HOSTS["link"][1]]}, "token bucket"),
    ],
)
def test_what_no_host_has_is_refused(tables, told):
    with pytest.raises(InputError, match=told):
        hosting(**tables)
