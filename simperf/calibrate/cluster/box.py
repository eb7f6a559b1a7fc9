"""Hosts with a torch process each, and one who gives them orders."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from simperf.calibrate.cluster.network import BoxError, Network, base_name, others, remains
from simperf.calibrate.cluster.priority import REAL_TIME, VARIABLE
from simperf.calibrate.cluster.shape import Shape

__all__ = ["Box"]

#: longest that an order may take [s]
PATIENCE = 180.0


class Box:
    """A boxed cluster with its processes, as a context.

    Parameters
    ----------
    hosts : int
    shape : Shape
    alone : bool
        Refuse while another process has a boxed cluster up: its hosts would share the cores with these.
    priority : str
        Of the hosts' threads: ``"real-time"`` or ``"ordinary"``.
    """

    def __init__(self, hosts: int, shape: Shape, *, alone: bool = False, priority: str = REAL_TIME) -> None:
        self.network = Network(hosts, shape)
        self.alone, self.priority = alone, priority
        self._stack = contextlib.ExitStack()
        self.workers: list[subprocess.Popen[bytes]] = []
        self._pending: list[bytes] = []

    def __enter__(self) -> Box:
        if self.alone and (busy := others()):
            whose = ", ".join(f"process {one}" for one in busy)
            raise BoxError(
                f"another boxed cluster is up ({whose}), and two would disturb each other's times: wait for it"
            )
        with self._stack:
            for left in remains(Path(tempfile.gettempdir())):
                shutil.rmtree(left, ignore_errors=True)
            folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix=f"{base_name()}-"))
            self._stack.enter_context(self.network)
            self._stack.callback(self._end)
            self._start(Path(folder))
            self._stack = self._stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _start(self, folder: Path) -> None:
        settings = {
            "GLOO_SOCKET_IFNAME": "eth0",
            "OMP_NUM_THREADS": "1",
            "MKL_NUM_THREADS": "1",
            VARIABLE: self.priority,
        }
        environment = {**os.environ, **settings}
        for host in range(self.network.hosts):
            words = [sys.executable, "-m", "simperf.calibrate.cluster.worker"]
            words += [str(host), str(self.network.hosts), str(folder / "meeting")]
            with (folder / f"log{host}").open("wb") as log:
                worker = subprocess.Popen(
                    self.network.inside(host, words),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    env=environment,
                    start_new_session=True,
                )
            self.workers.append(worker)
            self._pending.append(b"")
        self._logs = [folder / f"log{host}" for host in range(self.network.hosts)]
        self._answers()

    def _end(self) -> None:
        for worker in self.workers:
            worker.kill()
        for worker in self.workers:
            for stream in (worker.stdin, worker.stdout):
                with contextlib.suppress(OSError):
                    if stream is not None:
                        stream.close()
            worker.wait()
        self.workers.clear()

    def reshape(self, shape: Shape) -> None:
        """Shape the links again, unless they have that shape."""
        if shape != self.network.shape:
            self.network.reshape(shape)

    def order(self, job: str, **details: Any) -> list[Any]:
        """Have all hosts do something, and wait for it; returns what each read (None from those not concerned).

        Raises
        ------
        BoxError
            A process ended, or the order took too long.
        """
        line = (json.dumps({"job": job, **details}) + "\n").encode()
        for host, worker in enumerate(self.workers):
            assert worker.stdin is not None
            try:
                worker.stdin.write(line)
                worker.stdin.flush()
            except OSError:
                self._dead(host)
        return [answer["read"] for answer in self._answers()]

    def _answers(self) -> list[Mapping[str, Any]]:
        found: dict[int, Mapping[str, Any]] = {}
        limit = time.monotonic() + PATIENCE
        with selectors.DefaultSelector() as selector:
            for host, worker in enumerate(self.workers):
                assert worker.stdout is not None
                selector.register(worker.stdout, selectors.EVENT_READ, host)
            while len(found) < len(self.workers):
                ready = selector.select(limit - time.monotonic())
                if not ready:
                    missing = sorted(set(range(len(self.workers))) - set(found))
                    told = f"hosts {missing} of the boxed cluster have not answered in {PATIENCE:.0f} s"
                    raise BoxError(f"{told}: try again while the computer is idle")
                for key, _ in ready:
                    host = key.data
                    data = os.read(key.fd, 1 << 20)
                    if not data:
                        self._dead(host)
                    self._pending[host] += data
                    if self._pending[host].endswith(b"\n"):
                        found[host] = json.loads(self._pending[host])
                        self._pending[host] = b""
        return [found[host] for host in range(len(self.workers))]

    def _dead(self, host: int) -> None:
        text = self._logs[host].read_text(encoding="utf-8", errors="replace").strip()
        last = text.splitlines()[-1] if text else "it wrote nothing"
        raise BoxError(f"the process of host {host} of the boxed cluster has ended: {last}")
