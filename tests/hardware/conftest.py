import pytest

from simperf.hardware import build_machine


@pytest.fixture
def wired(catalog):
    """Build a machine from nodes {id: kind} and links (a, b, GB/s, us, options)."""

    def build(nodes, links, **options):
        spec = {
            "node": [
                {"id": name, **({"kind": kind} if isinstance(kind, str) else kind)} for name, kind in nodes.items()
            ],
            "link": [
                {"a": a, "b": b, "bandwidth": f"{rate} GB/s", "latency": f"{delay} us", **(more[0] if more else {})}
                for a, b, rate, delay, *more in links
            ],
            **options,
        }
        return build_machine(spec, catalog)

    return build
