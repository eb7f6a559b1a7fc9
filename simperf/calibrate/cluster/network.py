"""Hosts on a switch inside one machine: network namespaces, veth pairs, token buckets in both directions.

A host's own end of its link is shaped by one token bucket (``tbf``: what the adapter sends), the switch's end by
another (what the port sends to the host; its queue drops what does not fit, which is what incast does to a
shallow switch). The switch is a bridge in a namespace of its own, so nothing is made outside namespaces, and
taking the namespaces down takes everything down. Names carry the process's id and start, so that a later run
can tell and remove what a killed one has left behind.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from simperf.calibrate.cluster.shape import SEGMENT, SOCKET, Shape
from simperf.errors import SimperfError

__all__ = ["PREFIX", "BoxError", "Network", "base_name", "others", "remains", "remove_stale"]

PREFIX = "simperf"
_OURS = re.compile(rf"^{PREFIX}-(\d+)-(\d+)-(?:s|h\d+)$")
_FOLDER = re.compile(rf"^{PREFIX}-(\d+)-(\d+)-\w+$")


class BoxError(SimperfError):
    """The kernel or its tools refused a part of the boxed cluster."""


def _call(*words: str) -> str:
    # in a session of its own, so that Ctrl-C on a terminal does not end it halfway
    done = subprocess.run(words, capture_output=True, text=True, check=False, start_new_session=True)
    if done.returncode:
        raise BoxError(f"{' '.join(words)}: {done.stderr.strip() or done.stdout.strip() or 'failed'}")
    return done.stdout


def _started(process: int) -> int:
    """When a process was started, in the kernel's ticks; 0 if there is none."""
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except OSError:
        return 0
    return int(text.rsplit(")", 1)[1].split()[19])


def _namespaces() -> list[str]:
    return [line.split()[0] for line in _call("ip", "netns", "list").splitlines() if line.strip()]


def _remove(name: str) -> None:
    with contextlib.suppress(BoxError):
        for process in _call("ip", "netns", "pids", name).split():
            with contextlib.suppress(OSError):
                os.kill(int(process), signal.SIGKILL)
    with contextlib.suppress(BoxError):
        _call("ip", "netns", "delete", name)


def base_name() -> str:
    """Prefix of the names of all namespaces of this process."""
    own = os.getpid()
    return f"{PREFIX}-{own}-{_started(own)}"


def _owners() -> dict[str, int | None]:
    """Namespaces of boxed clusters, and the process that has made each; None if it has ended."""
    matches = [match for match in map(_OURS.match, _namespaces()) if match]
    return {match[0]: int(match[1]) if _started(int(match[1])) == int(match[2]) else None for match in matches}


def others() -> list[int]:
    """Other processes that have a boxed cluster up now."""
    return sorted({owner for owner in _owners().values() if owner is not None} - {os.getpid()})


def remove_stale() -> list[str]:
    """Remove what runs that are no longer alive have left; returns the names of the namespaces."""
    found = [name for name, owner in _owners().items() if owner is None]
    for name in found:
        _remove(name)
    return found


def remains(folder: Path) -> list[Path]:
    """Paths in a folder under the name of a process that has ended."""
    named = [(path, _FOLDER.match(path.name)) for path in sorted(folder.glob(f"{PREFIX}-*"))]
    return [path for path, found in named if found and _started(int(found[1])) != int(found[2])]


class Network:
    """Hosts ``0 .. hosts - 1`` on a switch, as a context.

    Parameters
    ----------
    hosts : int
    shape : Shape
        Of the links at the start; `reshape` changes it.
    control : str
        TCP's congestion control.
    """

    def __init__(self, hosts: int, shape: Shape, *, control: str = "cubic") -> None:
        self.base = base_name()
        self.hosts, self.shape, self.control = hosts, shape, control
        self._made: list[str] = []

    def name(self, host: int) -> str:
        """The namespace of a host."""
        return f"{self.base}-h{host}"

    @property
    def switch(self) -> str:
        """The namespace of the switch."""
        return f"{self.base}-s"

    def __enter__(self) -> Network:
        remove_stale()
        if self.switch in _namespaces():
            raise BoxError("this process has a boxed cluster already")
        try:
            self._build()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def inside(self, host: int, words: Sequence[str]) -> list[str]:
        """The command that runs `words` on a host."""
        return ["ip", "netns", "exec", self.name(host), *words]

    def _build(self) -> None:
        self._add(self.switch)
        _call("ip", "-n", self.switch, "link", "add", "br0", "type", "bridge", "stp_state", "0", "forward_delay", "0")
        _call("ip", "-n", self.switch, "link", "set", "br0", "up")
        for host in range(self.hosts):
            name, port = self.name(host), f"p{host}"
            self._add(name)
            _call("ip", "-n", self.switch, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", name)
            for where, device in ((self.switch, port), (name, "eth0")):
                size = ("gso_max_size", str(SEGMENT), "gro_max_size", str(SEGMENT))
                _call("ip", "-n", where, "link", "set", device, "up", *size)
            _call("ip", "-n", self.switch, "link", "set", port, "master", "br0")
            _call("ip", "-n", name, "address", "add", f"10.77.0.{host + 1}/24", "dev", "eth0")
            _call("ip", "-n", name, "link", "set", "lo", "up")
            # by route, because only the first namespace may choose a default that not everybody is allowed
            own = ("src", f"10.77.0.{host + 1}", "congctl", self.control)
            _call("ip", "-n", name, "route", "replace", "10.77.0.0/24", "dev", "eth0", *own)
            # the kernel would let a socket's buffer grow to megabytes, by what it has sent before
            buffer = f"net.ipv4.tcp_wmem=4096 {SOCKET // 2} {SOCKET}"
            knobs = ("net.ipv4.tcp_slow_start_after_idle=0", "net.ipv4.tcp_no_metrics_save=1", buffer)
            _call(*self.inside(host, ("sysctl", "-q", "-w", *knobs)))
        self.reshape(self.shape)

    def _add(self, name: str) -> None:
        self._made.append(name)  # before it is there: an interrupt may come between
        _call("ip", "netns", "add", name)

    def reshape(self, shape: Shape) -> None:
        """Shape all links again."""
        self.shape = shape
        for host in range(self.hosts):
            for where, device, limit in (
                (self.name(host), "eth0", 16 * shape.queue),
                (self.switch, f"p{host}", shape.queue),
            ):
                words = ["rate", f"{shape.of(host) * 8:.0f}bit", "burst", f"{shape.burst:.0f}b"]
                words += ["limit", f"{limit:.0f}b"]
                _call("tc", "-n", where, "qdisc", "replace", "dev", device, "root", "tbf", *words)

    def close(self) -> None:
        """Take everything down; a second call does nothing.

        An interrupt meanwhile is raised when all is gone: those who wait press Ctrl-C more than once.
        """
        interrupt = None
        while self._made:
            try:
                _remove(self._made[-1])
            except KeyboardInterrupt as error:
                interrupt = error
            else:
                self._made.pop()
        if interrupt is not None:
            raise interrupt
