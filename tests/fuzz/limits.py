"""A case in a process of its own, within limits of time and memory."""

import contextlib
import os
import resource
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["MEMORY", "SECONDS", "Outcome", "play"]

#: time of the processor [s] and memory [B] that a case may use; it may sleep some times as long
SECONDS, MEMORY, PATIENCE = 20, 2 * 10**9, 3
#: of what is said that is looked at [B]
MOST = 50_000_000


@dataclass(frozen=True)
class Outcome:
    """How a case ended: its exit code (negative: the signal), what it said, how long it took [s], files it wrote."""

    code: int
    out: str
    err: str
    seconds: float
    files: dict = field(default_factory=dict, repr=False)


def play(work, folder):
    """Call `work`, which gives an exit code, in a fork of this process whose folder is `folder`."""
    folder = Path(folder)
    before = _stamps(folder)
    began = seen = time.monotonic()
    asleep = 0.0
    child = os.fork()
    if child == 0:
        _play(work, folder)
    code = None
    while code is None:
        found, status, usage = os.wait4(child, os.WNOHANG)
        if found:
            code = os.waitstatus_to_exitcode(status)
            seconds = usage.ru_utime + usage.ru_stime
        elif asleep > PATIENCE * SECONDS:
            code, seconds = -signal.SIGALRM, time.monotonic() - began
        else:
            time.sleep(0.005 if time.monotonic() - began < 1 else 0.2)
            now = time.monotonic()
            asleep += (now - seen) * (_state(child) in "SD")
            seen = now
    with contextlib.suppress(ProcessLookupError):  # what it has started, too
        os.killpg(child, signal.SIGKILL)
    if code == -signal.SIGALRM:
        os.waitpid(child, 0)
    texts = [(folder / name).read_bytes()[:MOST].decode("utf-8", "replace") for name in ("stdout", "stderr")]
    written = [name for name, stamp in _stamps(folder).items() if before.get(name) != stamp]
    files = {name: (folder / name).read_bytes() for name in written if name not in ("stdout", "stderr")}
    return Outcome(code, *texts, seconds, files)


def _stamps(folder):
    """When files of a folder were written last, and their sizes."""
    there = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    states = {path: path.stat() for path in there}
    return {str(path.relative_to(folder)): (one.st_mtime_ns, one.st_size) for path, one in states.items()}


def _state(process):
    """Whether a process runs or waits for its turn (R), or sleeps (S, D): the time of a busy machine is not its own."""
    try:
        return Path(f"/proc/{process}/stat").read_text("utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return "R"


def _data():
    """Memory for data that this process has [B]: a fork has that of its parent, which is not the case's own."""
    status = Path("/proc/self/status").read_text("utf-8")
    return 1024 * int(status.partition("VmData:")[2].split()[0])


def _play(work, folder):
    """The child: never comes back."""
    code = 70
    try:
        os.setsid()
        os.chdir(folder)
        for number, name in ((0, os.devnull), (1, "stdout"), (2, "stderr")):
            handle = os.open(name, os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            os.dup2(handle, number)
        sys.stdin, sys.stdout, sys.stderr = (os.fdopen(number, mode) for number, mode in ((0, "r"), (1, "w"), (2, "w")))
        resource.setrlimit(resource.RLIMIT_DATA, (most := MEMORY + _data(), most))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 2))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (10**9, 10**9))
        code = work()
    except BaseException:  # as Python itself ends
        import traceback

        traceback.print_exc()
        code = 1
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 70)
