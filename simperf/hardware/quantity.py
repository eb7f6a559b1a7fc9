"""Types of a part's fields: what a file may write there, in which unit, and within which bounds.

A field of a part is written once, in its class: the annotation says how its file is checked
(`simperf.hardware.schema` makes the file's model of it), its unit, and its default.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal, get_args, get_type_hints

from annotated_types import Gt

from simperf.errors import nearest
from simperf.units import format_quantity, parse

__all__ = [
    "ATTENTION_LIBRARIES",
    "PRODUCT_CONSTANTS",
    "REQUIRED",
    "AttentionConstants",
    "Bandwidth",
    "Compute",
    "Count",
    "Duration",
    "Efficiency",
    "ExpertConstants",
    "Fraction",
    "Frequency",
    "InFile",
    "KernelFamily",
    "Latency",
    "Length",
    "LimitByPrecision",
    "Measured",
    "Overhead",
    "Ports",
    "Power",
    "Precision",
    "Price",
    "ProductConstants",
    "Quantity",
    "QueueDepth",
    "Size",
    "Span",
    "Switch",
    "Velocity",
    "units_of",
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


class _Annotation:
    """An annotation whose `read` makes a value of what a file says, before pydantic sees it."""

    read: ClassVar[Any]

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Read the value first."""
        from pydantic_core import core_schema

        return core_schema.no_info_before_validator_function(self.read, handler(source))


@dataclass(frozen=True)
class Quantity(_Annotation):
    """Annotation of a float that a file writes as text with a unit of `dimension`."""

    dimension: str
    zero: bool = False

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
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


@dataclass(frozen=True)
class AtLeastOne(_Annotation):
    """Annotation of a ratio of 1 or more, at most `high`."""

    high: float

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        """Say that a file holds a number here."""
        return {"type": "number", "minimum": 1, "maximum": self.high}

    def read(self, value: Any) -> float:
        """Return the ratio.

        Raises
        ------
        ValueError
            No number, below 1, or beyond `high`.
        """
        if isinstance(value, bool) or not isinstance(value, int | float) or not 1.0 <= value <= self.high:
            raise ValueError(f"it must be a number between 1 and {self.high:g}")
        return float(value)


@dataclass(frozen=True)
class WholeNumber:
    """Annotation of an int that a file writes as a whole number between two bounds."""

    low: int
    high: int

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Take whole numbers alone."""
        from pydantic_core import core_schema

        return core_schema.int_schema(strict=True, ge=self.low, le=self.high)


class TrueOrFalse:
    """Annotation of a bool that a file writes as ``true`` or ``false``, and in no other way."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Take true and false alone."""
        from pydantic_core import core_schema

        return core_schema.bool_schema(strict=True)


class Launches(_Annotation):
    """Annotation of a queue's depth: a whole number, or ``"unlimited"``."""

    @staticmethod
    def read(value: Any) -> float:
        """Return the number of launches; infinite for ``"unlimited"``."""
        if value == "unlimited":
            return math.inf
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError('a whole number of launches, 1 or more, or "unlimited" is expected')
        return float(value)


class KernelFamily(_Annotation):
    """Annotation of a text that names a kernel family, or one with a precision: ``gemm``, ``gemm-fp32``."""

    @staticmethod
    def read(name: Any) -> str:
        """Return the name.

        Raises
        ------
        ValueError
            There is no such family or precision.
        """
        family, _, precision = str(name).partition("-")
        if family not in _FAMILIES or (precision and precision not in get_args(Precision)):
            raise ValueError(f"no kernel family{nearest(family, _FAMILIES)}")
        return str(name)


#: libraries of attention kernels (`simperf.workload.layer_kernels.ATTENTION_LIBRARIES`; a run need not load these)
ATTENTION_LIBRARIES = ("flash-attention", "flash-attention-2", "flash-attention-triton", "cudnn", "tensorrt-llm")
#: constants of attention kernels (`simperf.cost.attention`), each a number without a dimension and at most so large
_ATTENTION = {
    "matrix": 1.0,
    "matrix-fp8": 1.0,
    "exponential": 100.0,
    "serial": 1.0,
    "block": 1e6,
    "tail": 1.0,
    "wide": 4.0,
    "fixed": 100.0,
    "prepare": 1e4,
    "cached": 100.0,
    "backward-matrix": 1.0,
    "backward-exponential": 100.0,
    "backward-block": 1e6,
    "decode-matrix": 1.0,
    "decode-memory": 1.5,
    "decode-block": 1e6,
    "decode-fixed": 100.0,
    "decode-cached": 100.0,
}


class LibraryConstants(_Annotation):
    """Annotation of a table of constants of attention kernels: ``LIBRARY.CONSTANT`` to a number without a dimension."""

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        """Say that a file holds a table of each library here, of numbers."""
        return {
            "type": "object",
            "additionalProperties": {"type": "object", "additionalProperties": {"type": "number"}},
        }

    @staticmethod
    def read(table: Any) -> Any:
        """Return the constants, those of a library in a table of its own as ``LIBRARY.CONSTANT``.

        Raises
        ------
        ValueError
            A key that is none, or a value that is no number within its bounds.
        """
        if not isinstance(table, Mapping):
            return table
        found: dict[str, float] = {}
        for library, constants in table.items():
            if library not in ATTENTION_LIBRARIES:
                known = ", ".join(ATTENTION_LIBRARIES)
                hint = nearest(str(library), ATTENTION_LIBRARIES)
                raise ValueError(f"no library {library!r} of attention kernels{hint}; there are {known}")
            if not isinstance(constants, Mapping):
                raise ValueError(f"{library}: a table of one library's constants is expected: [attention.{library}]")
            for name, value in constants.items():
                if name not in _ATTENTION:
                    raise ValueError(f"no constant {name!r} of attention kernels{nearest(str(name), _ATTENTION)}")
                number = isinstance(value, int | float) and not isinstance(value, bool)
                if not number or not 0 <= value <= _ATTENTION[name]:
                    raise ValueError(f"{library}.{name} = {value!r}: a number from 0 to {_ATTENTION[name]:g} is meant")
                found[f"{library}.{name}"] = float(value)
        return found


#: constants of experts (`simperf.cost.experts`) and their dimension: a share of the peak for each precision, shares of
#: the memory bandwidth, and the fixed time of a call
EXPERT_CONSTANTS = {
    **dict.fromkeys(("bf16", "fp8", "fp8-block", "mxfp4-bf16", "mxfp4-mxfp8", "memory", "stream"), "1"),
    "fixed": "s",
}

#: constants of matrix products by shape (`simperf.cost.products`) and their dimension
PRODUCT_CONSTANTS = {
    "fp16": "1",
    "bf16": "1",
    "tf32": "1",
    "fp8": "1",
    "fp8-block": "1",
    "fp4": "1",
    "fp4-fixed": "s",
    "memory": "1",
    "fixed": "s",
    "fill": "s",
    "waves": "1",
    "power": "W",
    "unaligned": "1",
    "scaling": "1",
    "scaling-fixed": "s",
}


@dataclass(frozen=True, eq=False)
class ConstantTable(_Annotation):
    """Annotation of a table of constants, each in its own dimension.

    Parameters
    ----------
    what : str
        What they are constants of, for messages.
    dimensions : mapping of str to str
        Dimension by constant.
    zero : tuple of str
        Those that may be 0.
    required : tuple of str
        Those that a table must have.
    """

    what: str
    dimensions: Mapping[str, str]
    zero: tuple[str, ...] = ()
    required: tuple[str, ...] = ()

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        """Say that a file holds a table of numbers and of texts with units here."""
        return {"type": "object", "additionalProperties": {"type": ["string", "number"]}}

    def read(self, table: Any) -> Any:
        """Return the constants in SI units.

        Raises
        ------
        ValueError
            A key that is none, a value that is wrong for its key, or a constant that is missing.
        """
        if not isinstance(table, Mapping):
            return table
        found = {}
        for key, value in table.items():
            if key not in self.dimensions:
                raise ValueError(f"no constant {key!r} of {self.what}{nearest(str(key), self.dimensions)}")
            try:
                found[key] = Quantity(self.dimensions[key], zero=key in self.zero).read(value)
            except ValueError as error:
                raise ValueError(f"{key}: {error}") from None
        missing = [key for key in self.required if key not in found]
        if missing:
            raise ValueError(f"a constant is missing: {', '.join(missing)}")
        return found


#: default of `InFile` where a file must have the key
REQUIRED: Any = object()


@dataclass(frozen=True)
class InFile:
    """Annotation of a field that its file writes in another way than the part holds it.

    Parameters
    ----------
    type : object
        What the file's value is read as; None for a field that no file may say.
    default : object
        Where the file does not say it; `REQUIRED` where it must.
    key : str
        The file's key, if it has another name.
    """

    type: Any
    default: Any = REQUIRED
    key: str = ""


Bandwidth = Annotated[float, Quantity("B/s")]
Compute = Annotated[float, Quantity("FLOP/s")]
Size = Annotated[float, Quantity("B")]
Overhead = Annotated[float, Quantity("B", zero=True)]
Latency = Annotated[float, Quantity("s", zero=True)]
Duration = Annotated[float, Quantity("s")]
Span = Annotated[Latency, Gt(0)]
Frequency = Annotated[float, Quantity("1/s", zero=True)]
Length = Annotated[float, Quantity("m", zero=True)]
Velocity = Annotated[float, Quantity("m/s")]
Power = Annotated[float, Quantity("W")]
Price = Annotated[float, Quantity("USD/h", zero=True)]
Fraction = Annotated[float, Quantity("1")]
Multiple = Annotated[float, AtLeastOne(1000.0)]
Count = Annotated[int, WholeNumber(1, 1_000_000)]
Ports = Annotated[int, WholeNumber(0, 1000)]
Switch = Annotated[bool, TrueOrFalse()]
QueueDepth = Annotated[float, Launches()]
Precision = Literal["fp64", "fp64-tensor", "fp32", "tf32", "fp16", "fp16-vector", "bf16", "fp8", "int8", "fp4"]
_FAMILIES = ("gemm", "conv", "elementwise", "reduction", "normalization", "attention", "copy")
ExpertConstants = Annotated[dict[str, float], ConstantTable("experts", EXPERT_CONSTANTS)]
Efficiency = dict[Annotated[str, KernelFamily()], Fraction]
AttentionConstants = Annotated[dict[str, float], LibraryConstants()]
ProductConstants = Annotated[
    dict[str, float],
    ConstantTable(
        "matrix products",
        PRODUCT_CONSTANTS,
        zero=("fill", "waves"),
        required=("memory", "fixed", "fill", "waves"),
    ),
]
LimitByPrecision = Annotated[Mapping[str, float], InFile(dict[Precision, Compute])]
#: a field that only measurements give, in a profile
Measured = InFile(None)


@lru_cache(maxsize=64)
def units_of(part: type[Any]) -> Mapping[str, str]:
    """Dimension of each field of a part's class that has one, by its annotations."""
    found = {name: _dimension(hint) for name, hint in get_type_hints(part, include_extras=True).items()}
    return {name: unit for name, unit in found.items() if unit not in ("", "1")}


def _dimension(hint: Any) -> str:
    """Dimension in an annotation, however deep."""
    if isinstance(hint, Quantity):
        return hint.dimension
    inside = (*get_args(hint), *getattr(hint, "__metadata__", ()))
    if isinstance(hint, InFile):
        inside = (hint.type,)
    return next((unit for unit in map(_dimension, inside) if unit), "")
