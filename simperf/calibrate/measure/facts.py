"""Facts of the machine and versions of what ran on it; no names of hosts or users."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path
from typing import Any

from simperf.calibrate.dataset import Value
from simperf.version import __version__

__all__ = ["anonymous", "busy", "machine_facts", "version_facts"]

_CPUINFO = Path("/proc/cpuinfo")
_MEMINFO = Path("/proc/meminfo")
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


def machine_facts(torch: Any = None, device: str = "cpu") -> dict[str, Value]:
    """Facts of the machine.

    Parameters
    ----------
    torch : module, optional
        Asked for the GPU.
    device : str
        ``"cpu"`` or ``"cuda:0"``.

    Returns
    -------
    dict of str to Value
        ``cpu``, ``cores`` (that this process may use), ``memory`` [B], ``l1d``, ``l2``, ``l3`` [B] of the first
        core and ``l3_shared`` (cores that share it), ``os``; of a GPU ``gpu``, ``gpus``, ``gpu_memory`` [B], ``sms``,
        and ``gpu_l2`` [B] where this torch tells it.
    """
    found: dict[str, Value] = {"cpu": _cpu(), "cores": _cores()}
    memory = re.search(r"MemTotal:\s+(\d+) kB", _read(_MEMINFO))
    if memory:
        found["memory"] = int(memory.group(1)) * 1024
    found |= _caches(_CACHES)
    found["os"] = platform.system()
    found["architecture"] = platform.machine()
    if torch is not None and device.startswith("cuda"):
        part = torch.cuda.get_device_properties(device)
        found |= {
            "gpu": str(part.name),
            "gpus": int(torch.cuda.device_count()),
            "gpu_memory": int(part.total_memory),
            "sms": int(part.multi_processor_count),
            "capability": f"{part.major}.{part.minor}",
        }
        if cache := int(getattr(part, "L2_cache_size", 0) or 0):
            found["gpu_l2"] = cache
    return found


def version_facts(torch: Any = None) -> dict[str, str]:
    """Versions of Python, simperf, torch, its libraries, the system's kernel and the GPU's driver."""
    found = {"python": platform.python_version(), "simperf": __version__, "kernel": platform.release()}
    if torch is None:
        return found
    found["torch"] = str(torch.__version__)
    blas = re.search(r"BLAS_INFO=(\w+)", torch.__config__.show())
    dnn = re.search(r"MKL-DNN v([\d.]+)", torch.__config__.show())
    if blas:
        found["blas"] = blas.group(1)
    if dnn:
        found["onednn"] = dnn.group(1)
    if torch.version.cuda:
        found["cuda"] = str(torch.version.cuda)
        driver = re.search(r"Kernel Module.*?\s(\d+\.[\d.]+)", _read(Path("/proc/driver/nvidia/version")))
        if driver:
            found["driver"] = driver.group(1)
        if torch.cuda.is_available() and torch.backends.cudnn.is_available():
            found["cudnn"] = str(torch.backends.cudnn.version())
    return found


def anonymous(text: str) -> str:
    """The text without folders, and without the names of this host and of its user: for what goes into a file.

    Examples
    --------
    >>> anonymous("No space left on device: '/home/ada/tmp/data'")
    "No space left on device: '.../data'"
    """
    text = re.sub(r"(?<![\w.])(?:[A-Za-z]:)?[/\\][^\s'\":]*[/\\]", ".../", text)
    for name, word in ((platform.node(), "<host>"), (_user(), "<user>")):
        if name not in ("", "root", "localhost"):
            text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", word, text)
    return text


def _user() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a user without a name, as in some containers
        return ""


def busy() -> str:
    """Reason why readings will be disturbed, in words; empty if the machine is idle."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    if load < 0.5:
        return ""
    return f"other programs are running (load {load:.1f} on {_cores()} cores): readings will spread"


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _cpu() -> str:
    """Model of the CPU; where it hides that, its family and model numbers too."""
    text = _read(_CPUINFO)
    fields = dict(re.findall(r"^([\w ]+?)\s*:\s*(.*)$", text, re.MULTILINE))
    name = " ".join(fields.get("model name", "").split()) or platform.processor() or platform.machine()
    if name and not re.search(r"\d", name) and "cpu family" in fields:
        name += f" (family {fields['cpu family']}, model {fields.get('model', '?')})"
    return name


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _caches(folder: Path) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for entry in sorted(folder.glob("index*")) if folder.is_dir() else ():
        level, kind, size = (_read(entry / name).strip() for name in ("level", "type", "size"))
        number = re.fullmatch(r"(\d+)([KMG]?)", size)
        if kind == "Instruction" or not number:
            continue
        key = "l1d" if level == "1" else f"l{level}"
        found[key] = int(number.group(1)) * {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3}[number.group(2)]
        if level == "3":
            found["l3_shared"] = _listed(_read(entry / "shared_cpu_list"))
    return found


def _listed(text: str) -> int:
    """How many CPUs a list such as ``0-3,8`` names."""
    count = 0
    for part in filter(None, text.strip().split(",")):
        low, _, high = part.partition("-")
        count += int(high or low) - int(low) + 1
    return count
