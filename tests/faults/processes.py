"""Commands as processes of their own, and what of them is left when they have ended."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path

__all__ = ["Command", "listening"]

_MARK = "SIMPERF_TEST_COMMAND"
#: the number of the pipe into which a command says that it begins
_BEGUN = "SIMPERF_TEST_BEGUN"
#: state of a socket that waits for connections, in the tables of the system
_LISTENS = "0A"


#: a module as a program that listens to Ctrl-C, which a shell's jobs in the background ignore, and to SIGHUP, which
#: those of nohup do; it says when it begins, as before that Python itself is starting
_HEAR = (
    "import os, signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "signal.signal(getattr(signal, 'SIGHUP', signal.SIGINT), signal.SIG_DFL if hasattr(signal, 'SIGHUP') else "
    "signal.default_int_handler); import runpy, sys; "
    "sys.argv[:] = sys.argv[1:]; sys.argv[0] == 'simperf' and __import__('simperf.cli'); "
    f"begun = os.environ.pop('{_BEGUN}', ''); begun and (os.write(int(begun), b'.'), os.close(int(begun))); "
    "runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)"
)


def listening():
    """Sockets of this machine that wait for connections: their ports, by the system's number."""
    lines = [line.split() for name in ("tcp", "tcp6") for line in _lines(Path("/proc/net") / name)[1:]]
    return {line[9]: int(line[1].rpartition(":")[2], 16) for line in lines if line[3] == _LISTENS}


def _lines(path):
    return path.read_text("utf-8").splitlines() if path.exists() else [""]


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
        self._begins, begun = os.pipe()
        self.process = subprocess.Popen(
            [sys.executable, *(("-c", code) if code else ()), *map(str, words[1:] if code else words)],
            cwd=folder,
            env={**os.environ, **own, _BEGUN: str(begun)},
            pass_fds=(begun,),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        os.close(begun)

    def end(self, within=1200.0):
        """Wait for its end: exit code, standard output and standard error."""
        out, err = self.process.communicate(timeout=within)
        return self.process.returncode, out, err

    def begin(self):
        """Wait until the module is about to be run, or has ended."""
        os.read(self._begins, 1)

    def signalled(self, number):
        """Send it a signal, unless it has ended by itself; as `end`."""
        if self.process.poll() is None:
            os.kill(self.process.pid, number)
        return self.end()

    def sockets(self):
        """Sockets on which its processes wait for connections, by the system's number, with their ports."""
        found = set()
        for number in self.left():
            for one in Path(f"/proc/{number}/fd").glob("*"):
                with contextlib.suppress(OSError):
                    link = os.readlink(one)
                    if link.startswith("socket:["):
                        found.add(link[8:-1])
        return {one: port for one, port in listening().items() if one in found}

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
        if self._begins is not None:
            os.close(self._begins)
            self._begins = None
        for number in self.left():
            try:
                os.kill(number, signal.SIGKILL)
            except OSError:
                continue
        if self.process.poll() is None or not self.process.stdout.closed:
            self.process.communicate()
