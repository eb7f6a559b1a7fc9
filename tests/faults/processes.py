"""Commands as processes of their own, and what of them is left when they have ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

__all__ = ["Command", "wait_until"]

_MARK = "SIMPERF_TEST_COMMAND"


def wait_until(condition, what, *, within=60.0):
    """Wait until the condition holds, and give its value."""
    end = time.monotonic() + within
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(what)


#: a module as a program that listens to Ctrl-C, which a shell's jobs in the background ignore, and to SIGHUP, which
#: those of nohup do
_HEAR = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "signal.signal(getattr(signal, 'SIGHUP', signal.SIGINT), signal.SIG_DFL if hasattr(signal, 'SIGHUP') else "
    "signal.default_int_handler); import runpy, sys; "
    "sys.argv[:] = sys.argv[1:]; runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)"
)


class Command:
    """A command with a mark in its environment, which all processes have that it starts.

    Parameters
    ----------
    words : sequence of str
        Arguments of Python.
    folder : Path
        Where it runs; caches are kept there.
    """

    def __init__(self, words, folder, **environment):
        self.mark = uuid.uuid4().hex
        root = Path(__file__).parents[2]
        path = os.pathsep.join(one for one in (str(root), os.environ.get("PYTHONPATH", "")) if one)
        own = {"PYTHONPATH": path, "XDG_CACHE_HOME": str(folder / "cache"), _MARK: self.mark, **environment}
        code = _HEAR if words[0] == "-m" else ""
        self.process = subprocess.Popen(
            [sys.executable, *(("-c", code) if code else ()), *map(str, words[1:] if code else words)],
            cwd=folder,
            env={**os.environ, **own},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def end(self, within=1200.0):
        """Wait for its end: exit code, standard output and standard error."""
        out, err = self.process.communicate(timeout=within)
        return self.process.returncode, out, err

    def signalled(self, number, after):
        """Send it a signal after so many seconds, or after less if it ends by itself; as `end`."""
        try:
            self.process.wait(after)
        except subprocess.TimeoutExpired:
            os.kill(self.process.pid, number)
        return self.end()

    def left(self):
        """Processes that carry its mark."""
        found = []
        for entry in Path("/proc").glob("[0-9]*/environ"):
            try:
                if f"{_MARK}={self.mark}".encode() in entry.read_bytes():
                    found.append(int(entry.parent.name))
            except OSError:
                continue
        return found

    def clear(self):
        """End what is left of it."""
        for number in self.left():
            try:
                os.kill(number, signal.SIGKILL)
            except OSError:
                continue
        if self.process.poll() is None or not self.process.stdout.closed:
            self.process.communicate()
