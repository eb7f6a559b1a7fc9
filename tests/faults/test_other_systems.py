"""Systems without the modules of POSIX: what is imported without them works, and what needs Linux says so."""

import pkgutil
import subprocess
import sys
from importlib.util import find_spec

import pytest

import simperf

#: modules of Unix that Windows does not have
HIDDEN = ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "curses", "readline", "syslog")
_HIDE = """
import importlib.abc, os, signal, sys
class Hidden(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in HIDDEN:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
HIDDEN = set(sys.argv[1].split(","))
for name in HIDDEN:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Hidden())
for name in ("fork", "forkpty", "setsid", "killpg", "getuid", "geteuid", "getpgid", "sched_getaffinity",
             "register_at_fork", "getloadavg", "mkfifo"):
    if hasattr(os, name):
        delattr(os, name)
for name in ("SIGHUP", "SIGKILL", "SIGALRM", "SIGUSR1", "setitimer", "alarm"):
    if hasattr(signal, name):
        delattr(signal, name)
"""


def _without(code, *words):
    """Run code in a process that lacks what Windows lacks."""
    command = [sys.executable, "-c", _HIDE + code, ",".join(HIDDEN), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_every_module_is_imported():
    names = [one.name for one in pkgutil.walk_packages(simperf.__path__, "simperf.") if "__main__" not in one.name]
    # torch and dask load what the system has that they were built for
    theirs = {name for name in names if name.startswith(("simperf.workload.zoo_source", "simperf.study.dask_cluster"))}
    code = """
import importlib
for name in sys.argv[2:]:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and error.name.partition(".")[0] in HIDDEN | {"simperf"}:
            raise
"""
    done = _without(code, *(name for name in names if name not in theirs))
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.parametrize(
    "words",
    [
        "run d2l/async",
        "compare d2l/sync-160mb",
        "sweep d2l/async --vary program.n=1..3 -o table.jsonl",
        "collective all-reduce --server dgx-1v",
        "check d2l/async",
    ],
)
def test_a_command_works(words, tmp_path):
    code = f"\nos.chdir({str(tmp_path)!r})\nfrom simperf.cli import main\nsys.exit(main(sys.argv[2:]))"
    done = _without(code, *words.split())
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
def test_what_needs_linux_says_so(tmp_path):
    code = "\nsys.platform = 'win32'\nfrom simperf.calibrate.cluster.requirements import missing\nprint(*missing())"
    done = _without(code)
    assert "a boxed cluster needs Linux" in done.stdout, done.stderr[-3000:]
