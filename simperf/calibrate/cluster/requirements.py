"""Requirements of a boxed cluster on the machine, and those that it does not meet."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec

from simperf.calibrate.cluster.network import base_name
from simperf.errors import InputError, Problem

__all__ = ["check", "missing"]


def missing() -> list[Problem]:
    """Requirements that are not met, in words, with what would help; empty if the cluster can be set up."""
    if not sys.platform.startswith("linux"):
        return [Problem("a boxed cluster needs Linux: its hosts are network namespaces", value=sys.platform)]
    found = []
    if os.geteuid() != 0:
        found.append(Problem("network namespaces need root", expected="sudo, or a container that runs as root"))
    absent = [tool for tool in ("ip", "tc", "sysctl") if shutil.which(tool) is None]
    if absent:
        message = f"commands are missing: {', '.join(absent)}"
        found.append(Problem(message, expected="the packages iproute2 and procps of the distribution"))
    if find_spec("torch") is None:
        expected = "pip install torch (a build for CPUs is enough)"
        found.append(Problem("torch is missing: its processes are what is measured", expected=expected))
    if not found:
        found += _kernel()
    return found


def _kernel() -> list[Problem]:
    """Try a namespace with a shaped link: kernels without tbf or veth, and containers without rights, refuse."""
    name = f"{base_name()}-s"
    steps = (
        ("network namespaces", f"ip netns add {name}"),
        ("veth pairs", f"ip -n {name} link add v0 type veth peer name v1"),
        ("the token bucket filter (tbf)", f"tc -n {name} qdisc add dev v0 root tbf rate 1mbit burst 32kb limit 64kb"),
        ("bridges", f"ip -n {name} link add b0 type bridge"),
    )
    try:
        for what, line in steps:
            done = subprocess.run(line.split(), capture_output=True, text=True, check=False)
            if done.returncode:
                message = f"the kernel, or this container's rights, refuse {what}"
                return [
                    Problem(message, value=(done.stderr or done.stdout).strip(), expected="NET_ADMIN and SYS_ADMIN")
                ]
    finally:
        subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)
    return []


def check() -> None:
    """Refuse if something is missing.

    Raises
    ------
    InputError
        All that is missing at once.
    """
    found = missing()
    if found:
        raise InputError(found)
