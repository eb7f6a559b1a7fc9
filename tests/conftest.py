"""What holds for all tests."""

import gc
import re
import signal

import pytest
from hypothesis import settings

# How long an example takes depends on what else the machine does; tests of speed are in tests/benchmarks.
settings.register_profile("simperf", deadline=None)
settings.register_profile("random", settings.get_profile("default"), deadline=None)  # others each time, in CI too
settings.load_profile("simperf")

# A shell that starts a run in the background has it and its children ignore interrupts: no test of one could end.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # as nohup has it
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# What is read to find the tests stays to the end: Python looks through it for garbage more rarely than it would.
gc.set_threshold(50_000, 20, 50)

#: files, and tests in them, that share what is dear to make, or a thing of which the machine has one: where several
#: processes run the tests, one of them runs these
TOGETHER = {
    "fits to published tables": r"tests/truth/test_(fits|ratchet.*\[fits)",
    "runs of measured scenarios": (
        r"tests/(truth/test_(orderings|data_parallel|parameter_servers|ratchet)|(book|goldens)/.*\[measured/)"
    ),
    "runs of all other scenarios": r"tests/(book/test_scenarios|goldens/)",
    "network namespaces": r"tests/calibrate/test_cluster_(network|teardown|measure)",
    "built documentation": r"tests/docs/test_(sphinx|docs_browser)",
}


@pytest.fixture(scope="session")
def catalog():
    """All parts that are shipped."""
    from simperf.hardware import Catalog  # where a test asks for it: how a run imports is tested, too

    return Catalog.load()


def pytest_addoption(parser):
    parser.addoption("--long", action="store_true", help="run the tests that are marked long, too")
    parser.addoption("--sample", type=int, metavar="N", help="run N tests only, drawn evenly from all that were found")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Keep what was asked for: with or without long tests; a sample from every part, the same tests each time."""
    kept = items if config.getoption("long") else [item for item in items if not item.get_closest_marker("long")]
    count = config.getoption("sample")
    if count and count < len(kept):
        kept = [kept[(2 * number + 1) * len(kept) // (2 * count)] for number in range(count)]
    if len(kept) < len(items):
        left_out = set(items) - set(kept)
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = kept


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """How `pytest -n 2` gives tests to processes: file by file in their order, but what belongs together to one."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return scope(nodeid)

    config.option.loadscopereorder = False  # the doctests, short files all, come last and even out the ends
    return ByFile(config, log)


def scope(nodeid):
    """What is run by one process: tests of the same scope."""
    return next((name for name, pattern in TOGETHER.items() if re.match(pattern, nodeid)), nodeid.partition("::")[0])
