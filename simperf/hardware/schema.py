"""What a part's file may say: pydantic models, one a kind, every quantity a text with its unit.

The models check each number's unit, sign and size as it is read; `validate` turns all that is
wrong into `Problem` rows with file and line, and refuses a number that no source vouches for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    ValidationError,
)
from pydantic_core import core_schema

from simperf.errors import Problem, nearest
from simperf.files import TomlFile
from simperf.hardware.words import explain
from simperf.units import format_quantity, parse

__all__ = [
    "MODELS",
    "Bandwidth",
    "Latency",
    "Length",
    "Overhead",
    "Price",
    "Quantity",
    "StackChoice",
    "Table",
    "unsourced",
    "validate",
]

#: dimension -> (smallest, largest) that a real part can have
_LIMITS = {
    "s": (0.0, 1e3),
    "B": (1.0, 1e18),
    "B/s": (1.0, 1e18),
    "FLOP/s": (1.0, 1e19),
    "1/s": (1e-3, 1e12),
    "m": (0.0, 1e9),
    "m/s": (1.0, 299_792_458.0),
    "W": (0.0, 1e6),
    "USD/h": (0.0, 1e7),
    "1": (0.0, 1.0),
}


@dataclass(frozen=True)
class Quantity:
    """Annotation of a float that a file writes as text with a unit of `dimension`."""

    dimension: str
    zero: bool = False

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        """Read and bound the number before pydantic sees it."""
        return core_schema.no_info_before_validator_function(self.read, handler(source))

    def __get_pydantic_json_schema__(self, schema: core_schema.CoreSchema, handler: Any) -> dict[str, Any]:
        """Say that a file holds a text with a unit here."""
        return {"type": ["string", "number"], "description": f"quantity [{self.dimension}]"}

    def read(self, value: Any) -> float:
        """Return `value` in the SI unit.

        Raises
        ------
        ValueError
            Wrong unit, negative, zero where nothing can be zero, or beyond anything that exists.
        """
        if self.dimension == "1" and isinstance(value, str) and value.count("/") == 1:
            top, bottom = (parse(part, "1") for part in value.split("/"))
            number = top / bottom if bottom else math.nan
        else:
            number = parse(value, self.dimension)
        low, high = _LIMITS[self.dimension]
        if number < 0:
            raise ValueError("it cannot be negative")
        if number == 0 and not self.zero:
            raise ValueError("it cannot be zero")
        if not math.isfinite(number) or number > high or (number != 0 and number < low):
            span = " and ".join(format_quantity(end, self.dimension) for end in (low, high))
            raise ValueError(f"no such thing exists: it must lie between {span}")
        return number


Bandwidth = Annotated[float, Quantity("B/s")]
Compute = Annotated[float, Quantity("FLOP/s")]
Size = Annotated[float, Quantity("B")]
Overhead = Annotated[float, Quantity("B", zero=True)]
Latency = Annotated[float, Quantity("s", zero=True)]
Duration = Annotated[float, Quantity("s")]
Frequency = Annotated[float, Quantity("1/s", zero=True)]
Length = Annotated[float, Quantity("m", zero=True)]
Velocity = Annotated[float, Quantity("m/s")]
Power = Annotated[float, Quantity("W")]
Price = Annotated[float, Quantity("USD/h", zero=True)]
Fraction = Annotated[float, Quantity("1")]
Count = Annotated[int, Field(strict=True, ge=1, le=1_000_000)]
Precision = Literal["fp64", "fp64-tensor", "fp32", "tf32", "fp16", "fp16-vector", "bf16", "fp8", "int8"]
_FAMILIES = ("gemm", "conv", "elementwise", "reduction", "normalization", "attention", "copy")


def _family(name: Any) -> str:
    family, _, precision = str(name).partition("-")
    if family not in _FAMILIES or (precision and precision not in get_args(Precision)):
        raise ValueError(f"no kernel family{nearest(family, _FAMILIES)}")
    return str(name)


Efficiency = dict[Annotated[str, BeforeValidator(_family)], Fraction]


def _depth(value: Any) -> float:
    """Read a queue's depth: a whole number, or "unlimited"."""
    if value == "unlimited":
        return math.inf
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError('a whole number of launches, 1 or more, or "unlimited" is expected')
    return float(value)


class Table(BaseModel):
    """A table of a file; keys that it does not know are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class _File(Table):
    kind: str
    title: str
    source: dict[str, str] = Field(default_factory=dict)


class _Architecture(_File):
    efficiency: Efficiency
    kernel_floor: Duration
    copy_engines: Count
    l1: Size | None = None
    threads: Count | None = None


class _Gpu(_File):
    architecture: str
    peak: dict[Precision, Compute]
    memory_bandwidth: Bandwidth
    memory_capacity: Size
    l2: Size
    sms: Count
    nvlinks: Annotated[int, Field(strict=True, ge=0, le=1000)] = 0
    power: Power | None = None
    kernel_floor: Duration | None = None
    copy_engines: Count | None = None
    l1: Size | None = None
    threads: Count | None = None
    efficiency: Efficiency = Field(default_factory=dict)


class _Memory(_File):
    bandwidth: Bandwidth
    first_access: Duration
    burst: Size


class _Cache(Table):
    level: Literal["L1", "L2", "L3"]
    capacity: Size
    latency: Duration
    bandwidth: Bandwidth
    shared: Count = 1


class _Cpu(_File):
    cores: Count
    clock: Frequency
    peak: dict[Precision, Compute]
    memory: str
    memory_channels: Count
    memory_capacity: Size
    cache: list[_Cache]
    forwarding: Bandwidth | None = None
    vendor: Literal["intel", "amd", "other"] = "other"
    ddio: Annotated[bool, Field(strict=True)] = False


class _Link(_File):
    technology: Literal["pcie", "nvlink", "ethernet", "infiniband", "qpi", "upi", "fabric", "sata", "wan"]
    rate: Bandwidth
    lanes: Count = 1
    encoding: Fraction = 1.0
    payload: Size = 1.0
    overhead: Overhead = 0.0
    protocol_efficiency: Fraction = 1.0
    latency: Latency
    velocity: Velocity | None = None
    shared: bool = False
    flow_limit: Bandwidth | None = None


class _Storage(_File):
    technology: Literal["hdd", "sata-ssd", "nvme", "cloud-volume"]
    capacity: Size
    read_bandwidth: Bandwidth
    write_bandwidth: Bandwidth
    read_latency: Latency
    write_latency: Latency
    read_iops: Frequency
    write_iops: Frequency
    block: Size
    seek: Latency = 0.0
    rotation: Frequency = 0.0


class _Nic(_File):
    technology: Literal["ethernet", "infiniband", "efa"]
    bandwidth: Bandwidth
    latency: Latency
    flow_limit: Bandwidth | None = None


class _Switch(_File):
    technology: Literal["pcie", "nvlink", "ethernet", "infiniband"]
    latency: Latency
    ports: Count
    backplane: Bandwidth | None = None
    reduces: bool = False


class _Frontend(_File):
    launch: Latency = 0.0
    result: Latency = 0.0
    synchronize: Latency | None = None
    scripted: Fraction = 1.0
    graph_launch: Latency = 0.0
    graph_node: Latency = 0.0
    graph_gap: Latency = 0.0
    capture: Latency = 0.0
    depth: Annotated[float, BeforeValidator(_depth)] = 1024
    copy_setup: Latency = 0.0
    pageable: Bandwidth = math.inf
    copies_block: Annotated[bool, Field(strict=True)] = True
    allocate: Bandwidth = math.inf
    pin: Bandwidth = math.inf


class _NetworkStack(_File):
    wake: Latency = 0.0
    message: Latency = 0.0
    call: Latency = 0.0
    cold: Latency = 0.0
    poll: Annotated[Latency, Field(gt=0)] = 200e-6
    keep: Annotated[Latency, Field(gt=0)] = 2e-3
    operation: Latency = 0.0
    byte_rate: Bandwidth = math.inf
    bulk_rate: Bandwidth = math.inf
    add_rate: Bandwidth = math.inf
    rate: Bandwidth = math.inf
    efficiency: Fraction = 1.0
    header: Overhead = 0.0
    word: Overhead = 0.0
    segment: Size = 16384.0
    window: Overhead = 0.0
    threads: Count = 1


class NetworkStackSpec(Table):
    """A machine's network stack: one of the catalogue, with numbers of its own."""

    use: str
    wake: Latency | None = None
    message: Latency | None = None
    call: Latency | None = None
    cold: Latency | None = None
    poll: Annotated[Latency, Field(gt=0)] | None = None
    keep: Annotated[Latency, Field(gt=0)] | None = None
    operation: Latency | None = None
    byte_rate: Bandwidth | None = None
    bulk_rate: Bandwidth | None = None
    add_rate: Bandwidth | None = None
    rate: Bandwidth | None = None
    efficiency: Fraction | None = None
    header: Overhead | None = None
    word: Overhead | None = None
    segment: Size | None = None
    window: Overhead | None = None
    threads: Count | None = None


def _named_stack(value: Any) -> Any:
    return {"use": value} if isinstance(value, str) else value


#: the network stack of a machine's table: a name, or a table with ``use``
StackChoice = Annotated[NetworkStackSpec, BeforeValidator(_named_stack)]

#: units of fitted constants
_SI = ("1", "s", "B", "FLOP", "J")


def _si(value: str) -> str:
    """A unit of fitted constants, whose numbers are in SI units: one that is not would be read as another number."""
    parts = value.split("/")
    if len(parts) > 2 or not all(part in _SI for part in parts):
        raise ValueError(f"no unit of a fitted constant, which is one of {', '.join(_SI)}, or one of these by another")
    return value


_CONSTANTS = (
    "constants by what they are of: kernel.FAMILY-PRECISION:CLASS (the class, a kind of operation, may be left out), "
    "frontend, copy.KIND, link.NAME, network-stack, ..."
)


class _FittedConstant(Table):
    value: float
    unit: Annotated[str, AfterValidator(_si)] = "1"
    low: float
    high: float
    stderr: Annotated[float, Field(ge=0)]
    draws: tuple[float, ...] = ()
    note: str = ""


class _FittedModel(Table):
    title: str = ""
    series: str = ""
    points: Count
    error: float
    scatter: float
    between: float = 0.0
    constant: dict[str, _FittedConstant]
    fixed: dict[str, float] = Field(default_factory=dict)
    held_out: tuple[str, ...] = ()


def _model_name(name: Any) -> str:
    """Name of a profile's model: that of kernels says their family, its precision, and perhaps their class."""
    head, _, rest = str(name).partition(".")
    family = rest.partition("-")[0]
    if head == "kernel" and family != "optimizer":  # which is fitted, and has no efficiency
        _family(family)
    return str(name)


class _Profile(_File):
    format: Literal[1] = 1
    gpu: str = ""
    dataset: str = ""
    made: dict[str, Any] = Field(default_factory=dict)
    machine: dict[str, Any] = Field(default_factory=dict)
    versions: dict[str, str] = Field(default_factory=dict)
    model: Annotated[dict[Annotated[str, BeforeValidator(_model_name)], _FittedModel], Field(description=_CONSTANTS)]


#: kind -> model of its file
MODELS: Mapping[str, type[Table]] = {
    "architecture": _Architecture,
    "gpu": _Gpu,
    "cpu": _Cpu,
    "memory": _Memory,
    "link": _Link,
    "storage": _Storage,
    "nic": _Nic,
    "switch": _Switch,
    "frontend": _Frontend,
    "network-stack": _NetworkStack,
    "profile": _Profile,
}
_WORDS = (
    *("kind", "format", "title", "source", "technology", "architecture", "memory", "shared", "reduces", "vendor"),
    *("gpu", "dataset", "made", "machine", "versions", "model"),  # a profile is its own source
)


def validate(
    model: type[Table], data: Mapping[str, Any], toml: TomlFile, *, at: tuple[str | int, ...] = ()
) -> tuple[Table | None, list[Problem]]:
    """Read `data`, which stands at key path `at` of `toml`, as `model`; or say all that is wrong with it."""
    try:
        return model.model_validate(data), []
    except ValidationError as error:
        rows = [_problem(model, row, toml, at) for row in error.errors(include_url=False)]
        return None, sorted(rows, key=lambda row: row.line)


def unsourced(model: type[Table], data: Mapping[str, Any], toml: TomlFile) -> list[Problem]:
    """Say which numbers of a part's file, a `model`, no entry of its ``[source]`` table vouches for."""
    source = data.get("source")
    named: dict[str, Any] = source if isinstance(source, dict) else {}
    rows = []
    for key in named:
        if key != "default" and key.split(".", 1)[0] not in data:
            known = [name for name in data if name not in _WORDS] + ["default"]
            rows.append(toml.problem(("source", key), f"a source for a key that is not there{nearest(key, known)}"))
    for key, value in data.items():
        if key in _WORDS or key in named or "default" in named or key not in model.model_fields:
            continue
        if isinstance(value, dict) and all(f"{key}.{entry}" in named for entry in value):
            continue
        hint = f'[source] with {key} = "..." or default = "..."'
        rows.append(toml.problem((key,), "this number has no source", expected=hint))
    return rows


def _problem(model: type[Table], row: Any, toml: TomlFile, at: tuple[str | int, ...]) -> Problem:
    where = tuple(part for part in row["loc"] if part != "[key]")
    return explain(row, toml, (*at, *where), _fields(model, where[:-1]))


def _fields(model: type[Table], where: tuple[str | int, ...]) -> list[str]:
    """Keys that the table at `where` may have."""
    found: type[Table] | None = model
    named = False
    for part in where:
        if named:  # what stands in a table of tables, under a name of people's choice
            named = False
        elif found is not None and isinstance(part, str):
            entry = found.model_fields.get(part)
            named = entry is not None and get_origin(entry.annotation) is dict
            kinds = (entry.annotation, *get_args(entry.annotation)) if entry else ()
            found = next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Table)), None)
    return sorted(found.model_fields) if found is not None else []
