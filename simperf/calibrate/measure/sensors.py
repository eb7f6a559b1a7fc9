"""Clocks, power and temperature of a GPU while it is measured: read by NVML, or by ``nvidia-smi``.

NVML (the package ``nvidia-ml-py``) is asked while the device works and the host only waits for it, so that no reading
is disturbed. Without it, one ``nvidia-smi`` runs beside the session and writes a line every half second.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import statistics
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Protocol

__all__ = ["NvidiaSmi", "Nvml", "Sensors", "find_sensors", "gpu_id", "throttled"]

#: time between two readings [s]
EVERY = 0.05
#: columns that ``nvidia-smi`` is asked for -> name and factor to SI units
_COLUMNS: Mapping[str, tuple[str, float]] = {
    "clocks.sm": ("clock", 1e6),
    "clocks.mem": ("memory_clock", 1e6),
    "power.draw": ("power", 1.0),
    "temperature.gpu": ("temperature", 1.0),
}
_FACTS: Mapping[str, tuple[str, float]] = {
    "clocks.max.sm": ("clock_max", 1e6),
    "clocks.max.mem": ("memory_clock_max", 1e6),
    "power.limit": ("power_limit", 1.0),
}
_REASONS = "clocks_throttle_reasons.active"
#: bits of the reasons for a reduced clock (nvml.h, nvmlClocksThrottleReasons); idle and a set clock are none
REASONS: Mapping[int, str] = {
    0x04: "power cap",
    0x08: "hardware slowdown",
    0x20: "temperature",
    0x40: "hardware temperature",
    0x80: "power brake",
}
_TIMEOUT = 20.0


class Reader(Protocol):
    """A source of readings."""

    def facts(self) -> dict[str, float]:
        """Limits of the device: ``clock_max`` and ``memory_clock_max`` [Hz], ``power_limit`` [W]."""
        ...

    def driver(self) -> str:
        """Version of the driver; empty if unknown."""
        ...

    def read(self) -> Sequence[dict[str, float]]:
        """Readings since the last call, the newest last."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...


@dataclass
class Sensors:
    """Readings of a device, gathered over each point.

    Parameters
    ----------
    reader : Reader
    """

    reader: Reader
    _rows: list[dict[str, float]] = field(default_factory=list, repr=False)
    _last: float = field(default=0.0, repr=False)

    def watch(self) -> None:
        """Take a reading, unless the last one was just taken; called while the device works."""
        if time.monotonic() - self._last >= EVERY:
            self._last = time.monotonic()
            self._rows += self.reader.read()

    def lap(self) -> dict[str, float]:
        """Medians of the readings since the last lap, and ``throttle``, all reasons for a reduced clock as bits."""
        if not self._rows:
            self._rows += self.reader.read()
        rows, self._rows = self._rows, []
        names = dict.fromkeys(name for row in rows for name in row if name != "throttle")
        found = {name: statistics.median(row[name] for row in rows if name in row) for name in names}
        bits = 0
        for row in rows:
            bits |= int(row.get("throttle", 0.0))
        return {**found, "throttle": float(bits)} if bits else found

    def close(self) -> None:
        """End what reads."""
        self.reader.close()


def throttled(sensors: Mapping[str, float]) -> tuple[str, ...]:
    """A warning if the clock was reduced, with the reasons.

    Examples
    --------
    >>> throttled({"clock": 1.4e9, "throttle": 4.0}), throttled({"throttle": 1.0}), throttled({})
    (('the clock was reduced: power cap',), (), ())
    """
    bits = int(sensors.get("throttle", 0.0))
    words = [name for bit, name in REASONS.items() if bits & bit]
    return (f"the clock was reduced: {', '.join(words)}",) if words else ()


class Nvml:
    """NVML through the module ``pynvml``.

    Parameters
    ----------
    pynvml : module
    which : str
        ``"GPU-..."``, the device's UUID, or its number.
    """

    def __init__(self, pynvml: Any, which: str) -> None:
        self._nvml = pynvml
        pynvml.nvmlInit()
        by_number = which.isdigit()
        find = pynvml.nvmlDeviceGetHandleByIndex if by_number else pynvml.nvmlDeviceGetHandleByUUID
        self._device = find(int(which) if by_number else which)

    def facts(self) -> dict[str, float]:
        """See `Reader.facts`."""
        nvml, device = self._nvml, self._device
        asked = {
            "clock_max": lambda: 1e6 * nvml.nvmlDeviceGetMaxClockInfo(device, nvml.NVML_CLOCK_SM),
            "memory_clock_max": lambda: 1e6 * nvml.nvmlDeviceGetMaxClockInfo(device, nvml.NVML_CLOCK_MEM),
            "power_limit": lambda: 1e-3 * nvml.nvmlDeviceGetEnforcedPowerLimit(device),
        }
        return self._asked(asked)

    def driver(self) -> str:
        """See `Reader.driver`."""
        try:
            found = self._nvml.nvmlSystemGetDriverVersion()
        except Exception:
            return ""
        return found.decode() if isinstance(found, bytes) else str(found)

    def read(self) -> Sequence[dict[str, float]]:
        """See `Reader.read`."""
        nvml, device = self._nvml, self._device
        asked = {
            "clock": lambda: 1e6 * nvml.nvmlDeviceGetClockInfo(device, nvml.NVML_CLOCK_SM),
            "memory_clock": lambda: 1e6 * nvml.nvmlDeviceGetClockInfo(device, nvml.NVML_CLOCK_MEM),
            "power": lambda: 1e-3 * nvml.nvmlDeviceGetPowerUsage(device),
            "temperature": lambda: nvml.nvmlDeviceGetTemperature(device, nvml.NVML_TEMPERATURE_GPU),
            "throttle": lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(device),
        }
        found = self._asked(asked)
        return [found] if found else []

    def close(self) -> None:
        """See `Reader.close`."""
        self._nvml.nvmlShutdown()

    @staticmethod
    def _asked(asked: Mapping[str, Any]) -> dict[str, float]:
        """What is answered: a virtual machine's driver leaves some questions open."""
        found = {}
        for name, ask in asked.items():
            try:
                found[name] = float(ask())
            except Exception:  # an NVMLError, or an older module without the function
                continue
        return found


class NvidiaSmi:
    """One ``nvidia-smi`` that writes a line every half second, until `close`.

    Parameters
    ----------
    program : str
        Path of it.
    which : str
        The device's UUID or number.
    """

    def __init__(self, program: str, which: str) -> None:
        self._program, self._which = program, which
        self._rows: list[dict[str, float]] = []
        asked = f"--query-gpu={','.join((*_COLUMNS, _REASONS))}"
        words = [program, asked, "--format=csv,noheader,nounits", "-i", which, "-lms", "500"]
        self._process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            *cells, reasons = [cell.strip() for cell in line.split(",")]
            row = _numbers(cells, _COLUMNS)
            with contextlib.suppress(ValueError):
                row["throttle"] = float(int(reasons, 16))
            if row:
                self._rows.append(row)

    def facts(self) -> dict[str, float]:
        """See `Reader.facts`."""
        return _numbers(self._ask(_FACTS), _FACTS)

    def driver(self) -> str:
        """See `Reader.driver`."""
        return (self._ask(("driver_version",)) or [""])[0]

    def _ask(self, columns: Sequence[str] | Mapping[str, object]) -> list[str]:
        words = [self._program, f"--query-gpu={','.join(columns)}", "--format=csv,noheader,nounits", "-i", self._which]
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=_TIMEOUT, check=True)
        except (OSError, subprocess.SubprocessError):
            return []
        return [cell.strip() for cell in done.stdout.strip().split(",")]

    def read(self) -> Sequence[dict[str, float]]:
        """See `Reader.read`."""
        rows, self._rows = self._rows, []
        return rows

    def close(self) -> None:
        """See `Reader.close`."""
        self._process.terminate()
        self._process.wait()
        self._listener.join(1.0)
        if self._process.stdout is not None:
            self._process.stdout.close()


def _numbers(cells: Sequence[str], columns: Mapping[str, tuple[str, float]]) -> dict[str, float]:
    """Cells in SI units, those that are numbers."""
    found = {}
    for cell, (name, factor) in zip(cells, columns.values(), strict=False):
        try:
            found[name] = factor * float(cell)
        except ValueError:  # "[N/A]"
            continue
    return found


def gpu_id(torch: Any, device: str) -> str:
    """The UUID of torch's device, or its number among all of the machine: torch may see only some of them."""
    found = getattr(torch.cuda.get_device_properties(device), "uuid", None)
    if found is not None:
        text = str(found)
        return text if text.startswith("GPU-") else f"GPU-{text}"
    number = device.partition(":")[2] or "0"
    seen = [part.strip() for part in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if part.strip()]
    return seen[int(number)] if int(number) < len(seen) else number


def find_sensors(which: str) -> Sensors | None:
    """Sensors of an NVIDIA GPU; None if neither NVML nor ``nvidia-smi`` is there, or neither knows the device.

    Parameters
    ----------
    which : str
        The device's UUID (``"GPU-..."``) or number.
    """
    try:
        found: Reader = Nvml(import_module("pynvml"), which)
        if found.read():
            return Sensors(found)
        found.close()
    except Exception:  # not installed, or no driver for it
        pass
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    try:
        reader = NvidiaSmi(program, which)
    except OSError:
        return None
    if not reader.facts():
        reader.close()
        return None
    return Sensors(reader)
