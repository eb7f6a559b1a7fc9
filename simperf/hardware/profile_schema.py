"""The schema of a profile's file: fitted constants, each with its unit, its range and its joint samples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from simperf.errors import Problem, nearest
from simperf.files import TomlFile
from simperf.hardware.facts import NUMBERS
from simperf.hardware.quantity import Count, KernelFamily
from simperf.hardware.schema import PartFile, TomlTable

__all__ = ["FORMULAS", "ProfileFile", "constant_problems"]

#: units of fitted constants
_SI = ("1", "s", "B", "FLOP", "J")
#: smallest rate, longest time [s] and largest number of any constant
_LEAST_RATE, _LONGEST, _HUGE = 1e-9, 1e9, 1e21
#: units of the constants of kernels, copies and calls
_UNITS = {
    **dict.fromkeys(("bandwidth", "cached", "far", "memory", "near", "serial"), ("B/s",)),
    **dict.fromkeys(("alpha", "chill", "fork", "late", "launch", "overhead", "plain", "row", "setup"), ("s",)),
    **dict.fromkeys(("capacity", "late_at", "near_at"), ("B",)),
    **dict.fromkeys(("half_f", "half_k", "half_m", "half_n", "half_p", "half_rows", "odd", "strided"), ("1",)),
    "beta": ("s/B", "s"),
    "rate": ("FLOP/s", "B/s"),
    "scored": ("1/s",),
}
#: constants that the formulas of kernels on a GPU take, by formula
FORMULAS = {
    "stream": frozenset({"overhead", "rate", "cached", "capacity"}),
    "rows": frozenset({"overhead", "rate", "kept", "loose"}),
    "matrix": frozenset(
        {
            *("rate", "memory", "overhead", "half_m", "half_n", "half_k", "deep", "deep_at", "deep_m", "sharpness"),
            *("power", "flop_energy", "byte_energy", "stored", "floor"),
            *("tiled", "tile_m", "tile_n", "tile_only", "tile_half"),
        }
    ),
}
#: families whose kernels multiply matrices
_MATRICES = frozenset({"gemm", "conv", "attention"})
#: models whose constants the table of units is of
_HEADS = ("kernel", "copy", "call")
_WORDS = (
    "constants by what they are of: kernel.FAMILY-PRECISION:CLASS (the class, a kind of operation, may be left out), "
    "frontend, copy.KIND, link.NAME, network-stack, ..."
)


def _si(value: str) -> str:
    """A unit of fitted constants, whose numbers are in SI units: one that is not would be read as another number."""
    parts = value.split("/")
    if len(parts) > 2 or not all(part in _SI for part in parts):
        raise ValueError(f"no unit of a fitted constant, which is one of {', '.join(_SI)}, or one of these by another")
    return value


_Finite = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=-_HUGE, le=_HUGE)]
_Share = Annotated[float, Field(strict=True, ge=0, le=1e6, allow_inf_nan=False)]


class _FittedConstant(TomlTable):
    value: _Finite
    unit: Annotated[str, AfterValidator(_si)] = "1"
    low: _Finite
    high: _Finite
    stderr: Annotated[_Finite, Field(ge=0)]
    draws: Annotated[tuple[_Share, ...], Field(max_length=100_000, description="factors of the value")] = ()
    note: str = ""

    @model_validator(mode="after")
    def _range(self) -> _FittedConstant:
        """A rate is above 0, a time or a size 0 or more; a constant of unit 1 may have any sign, as a power has."""
        rate = self.unit.endswith("/s")
        least = _LEAST_RATE if rate else 0.0 if self.unit != "1" else -_HUGE
        most = _LONGEST if self.unit in ("s", "s/B") else _HUGE
        if not least <= self.value <= most:
            meant = "above 0" if rate else "of 0 or more" if self.unit != "1" else f"of {-_HUGE:g} or more"
            raise ValueError(f"value = {self.value:g} {self.unit}: a number {meant} is meant, at most {most:g}")
        if not min(least, 0.0) <= self.low <= self.high <= most:
            ends = f"low = {self.low:g}, high = {self.high:g} {self.unit}"
            raise ValueError(f"{ends}: an interval from {min(least, 0.0):g} to at most {most:g} is meant")
        if rate and 0.0 in self.draws:
            raise ValueError(f"draws[{self.draws.index(0.0)}] = 0: a factor of a rate is above 0")
        return self


class _FittedModel(TomlTable):
    title: str = ""
    series: str = ""
    points: Count
    error: _Share
    scatter: _Share
    between: Annotated[float, Field(strict=True, ge=0, le=10, allow_inf_nan=False)] = 0.0
    constant: dict[str, _FittedConstant] = Field(default_factory=dict)
    fixed: dict[str, _Finite] = Field(default_factory=dict)
    held_out: tuple[str, ...] = ()
    note: Annotated[str, Field(max_length=1000, description="why it should be doubted")] = ""

    @model_validator(mode="after")
    def _constants(self) -> _FittedModel:
        """A model has constants, or the factors of a lattice, which have no intervals of their own."""
        if not self.constant and "lattice" not in self.fixed:
            raise ValueError("a table of constants is missing: [model.NAME.constant.CONSTANT]")
        return self


def _model_name(name: Any) -> str:
    """Name of a profile's model: that of kernels says their family, its precision, and perhaps their class."""
    head, _, rest = str(name).partition(".")
    family = rest.partition("-")[0]
    if head == "kernel" and family not in ("optimizer", "moe"):  # which are fitted, and have no efficiency
        KernelFamily.read(family)
    return str(name)


_Fact = Annotated[str, Field(strict=True)] | Annotated[bool, Field(strict=True)] | _Finite


class ProfileFile(PartFile):
    """The file of a profile."""

    format: Literal[1] = 1
    gpu: str = ""
    dataset: str = ""
    made: dict[str, _Fact] = Field(default_factory=dict)
    machine: dict[str, _Fact] = Field(default_factory=dict)
    versions: dict[str, str] = Field(default_factory=dict)
    model: Annotated[dict[Annotated[str, BeforeValidator(_model_name)], _FittedModel], Field(description=_WORDS)]


def constant_problems(file: ProfileFile, toml: TomlFile) -> Iterator[Problem]:
    """Problems of what runs know by name: units of constants, numbers that none has, facts of the machine."""
    for key in NUMBERS:
        fact = file.machine.get(key, 1)
        if isinstance(fact, str | bool) or fact < 1:
            yield toml.problem(("machine", key), "a number of 1 or more is expected", value=fact)
    for name, model in file.model.items():
        if name.partition(".")[0] not in _HEADS or "lattice" in model.fixed:
            continue
        if name.startswith("kernel."):
            yield from _kernel_problems(name, {*model.constant, *model.fixed}, toml)
        for key, one in model.constant.items():
            at = ("model", name, "constant", key)
            units = _UNITS.get(key, (one.unit,))
            if one.unit not in units:
                told = " or ".join(units)
                yield toml.problem((*at, "unit"), "another unit is expected", value=one.unit, expected=told)
            elif one.unit == "1" and key in _UNITS and one.value < 0:
                yield toml.problem((*at, "value"), "a number of 0 or more is expected", value=one.value)
        yield from _fixed_problems(name, model.fixed, toml)


def _kernel_problems(name: str, names: set[str], toml: TomlFile) -> Iterator[Problem]:
    """Constants without which a kernel has no time, and those that no formula of its family has."""
    family = name.partition(".")[2].partition("-")[0]
    rate = "serial" if "serial" in names and "processor" in names else "rate"
    for key, unit in (("overhead", "s"), (rate, "FLOP/s" if family in _MATRICES else "B/s")):
        if key not in names and family != "moe":
            expected = f'[model."{name}".constant.{key}] with value, low, high, stderr and unit = "{unit}"'
            yield toml.problem(("model", name, "constant"), f"the constant {key} is missing", expected=expected)
    if "processor" in names or family == "moe":
        return
    known = FORMULAS["matrix" if family in _MATRICES else "rows" if "kept" in names else "stream"]
    for key in sorted(names - known):
        message = f"no formula of {family} has this constant{nearest(key, known)}"
        yield toml.problem(("model", name, "constant", key), message)


def _fixed_problems(name: str, fixed: Mapping[str, float], toml: TomlFile) -> Iterator[Problem]:
    """Constants without intervals, which have no unit in the file."""
    for key, value in fixed.items():
        unit = _UNITS.get(key, ("",))[0]
        if unit and (value < 0 or (value == 0 and unit.endswith("/s"))):
            meant = "above 0" if unit.endswith("/s") else "of 0 or more"
            yield toml.problem(("model", name, "fixed", key), f"a number {meant} is expected", value=value)
