"""Clocks, power and temperature of a device that is played: NVML and nvidia-smi of our own."""

import os
import sys
import time
from types import SimpleNamespace

import pytest

from simperf.calibrate.dataset import Dataset, Measurement
from simperf.calibrate.measure import sensors
from simperf.calibrate.measure.sensors import NvidiaSmi, Nvml, Sensors, find_sensors, gpu_id
from simperf.calibrate.measure.session import MeasuringSession
from simperf.calibrate.measure.task import point
from simperf.errors import InputError


class NotSupportedError(Exception):
    pass


def nvml(**changed):
    """A module like pynvml, of a driver that does not tell the memory's clock."""

    def unknown(*_):
        raise NotSupportedError("Not Supported")

    played = {
        "NVML_CLOCK_SM": 1,
        "NVML_CLOCK_MEM": 2,
        "NVML_TEMPERATURE_GPU": 0,
        "nvmlInit": lambda: None,
        "nvmlShutdown": lambda: None,
        "nvmlDeviceGetHandleByIndex": lambda number: number,
        "nvmlDeviceGetHandleByUUID": lambda name: name,
        "nvmlDeviceGetMaxClockInfo": lambda device, which: 1980 if which == 1 else unknown(),
        "nvmlDeviceGetEnforcedPowerLimit": lambda device: 700_000,
        "nvmlSystemGetDriverVersion": lambda: b"580.1",
        "nvmlDeviceGetClockInfo": lambda device, which: 1755 if which == 1 else unknown(),
        "nvmlDeviceGetPowerUsage": lambda device: 690_000,
        "nvmlDeviceGetTemperature": lambda device, which: 61,
        "nvmlDeviceGetCurrentClocksThrottleReasons": lambda device: 0x4,
    }
    return SimpleNamespace(**{**played, **changed})


def test_nvml_is_read_in_si_units_and_what_a_driver_does_not_tell_is_left_out():
    read = Nvml(nvml(), "GPU-1")
    assert read.facts() == {"clock_max": 1.98e9, "power_limit": 700.0}
    assert read.driver() == "580.1"
    kept = Sensors(read)
    kept.watch()
    kept.watch()  # at once: not read again
    assert kept.lap() == {"clock": 1.755e9, "power": 690.0, "temperature": 61.0, "throttle": 4.0}


def test_a_reduced_clock_is_a_warning_of_the_point_and_all_is_in_the_file(tmp_path):
    path = tmp_path / "m.json"
    kept = MeasuringSession(path, machine={}, versions={}, sensors=Sensors(Nvml(nvml(), "0")))
    kept.run([("products", point("op/gemm", {"m": 1}, lambda: [1e-3] * 4))], tell=lambda *_: None)
    (found,) = Dataset.load(path)
    assert found.sensors["clock"] == 1.755e9
    assert found.warnings == ("the clock was reduced: power cap",)


def test_sensors_of_a_file_that_are_no_numbers_are_refused(tmp_path):
    path = tmp_path / "m.json"
    Dataset("x", measurements=(Measurement("op/gemm", {}, (1.0,), sensors={"clock": 1e9}),)).save(path)
    path.write_text(path.read_text().replace("1000000000.0", '"fast"'))
    with pytest.raises(InputError, match="sensors must be a table of numbers"):
        Dataset.load(path)


SMI = """#!{python}
import sys, time
if "-lms" in sys.argv:
    while True:
        print("1755, 2619, 690.5, [N/A], 0x0000000000000004", flush=True)
        time.sleep(0.02)
print("580.1" if "driver_version" in sys.argv[1] else "1980, 2619, 700.00")
"""


@pytest.mark.skipif(os.name == "nt", reason="a script with an interpreter line")
def test_nvidia_smi_stands_in_and_ends_with_the_session(tmp_path, monkeypatch):
    program = tmp_path / "nvidia-smi"
    program.write_text(SMI.format(python=sys.executable))
    program.chmod(0o755)
    monkeypatch.setattr(sensors, "import_module", lambda name: (_ for _ in ()).throw(ModuleNotFoundError(name)))
    monkeypatch.setenv("PATH", str(tmp_path))
    found = find_sensors("0")
    assert isinstance(found.reader, NvidiaSmi)
    try:
        assert found.reader.facts() == {"clock_max": 1.98e9, "memory_clock_max": 2.619e9, "power_limit": 700.0}
        assert found.reader.driver() == "580.1"
        end = time.monotonic() + 20.0
        while not (read := found.lap()) and time.monotonic() < end:
            time.sleep(0.02)
        assert read == {"clock": 1.755e9, "memory_clock": 2.619e9, "power": 690.5, "throttle": 4.0}
    finally:
        found.close()
    assert found.reader._process.poll() is not None


def test_without_nvml_and_nvidia_smi_nothing_is_read(monkeypatch, tmp_path):
    monkeypatch.setattr(sensors, "import_module", lambda name: (_ for _ in ()).throw(ModuleNotFoundError(name)))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_sensors("0") is None


@pytest.mark.parametrize(
    ("part", "visible", "expected"),
    [
        ({"uuid": "5bc4"}, "", "GPU-5bc4"),
        ({"uuid": "GPU-5bc4"}, "", "GPU-5bc4"),
        ({}, "", "1"),
        ({}, "3,5", "5"),
        ({}, "3", "1"),
    ],
)
def test_the_device_is_found_among_all_of_the_machine(monkeypatch, part, visible, expected):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    torch = SimpleNamespace(cuda=SimpleNamespace(get_device_properties=lambda device: SimpleNamespace(**part)))
    assert gpu_id(torch, "cuda:1") == expected
