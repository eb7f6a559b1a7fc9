"""A profile: constants that were fitted to measurements of one machine, with their uncertainty."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import exp
from statistics import NormalDist
from typing import Any, ClassVar

from simperf.hardware.devices import LinkPart
from simperf.hardware.frontend import FrontendPart
from simperf.hardware.measured import call_fields, collective_fields, device_fields, frontend_fields
from simperf.hardware.netstack import NetworkStackPart
from simperf.hardware.part import Part
from simperf.hardware.processors import GpuPart

__all__ = ["NETWORK_STACK", "FittedConstant", "FittedModel", "ProfilePart", "fitted_models"]


#: name of the model of a host's network stack
NETWORK_STACK = "network-stack"
#: joint draws of the spreads about a lattice, which are made from their number
_LATTICE_DRAWS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedConstant:
    """One fitted number.

    Parameters
    ----------
    value, low, high, stderr : float
        Best value, 90 % interval and standard error, in `unit`.
    unit : str
    draws : tuple of float
        Joint samples, as factors of the value: entry i belongs together in all constants of a model.
    note : str
        Why it should be doubted.
    """

    value: float
    low: float
    high: float
    stderr: float
    unit: str = "1"
    draws: tuple[float, ...] = ()
    note: str = ""

    def at(self, draw: int) -> float:
        """The value of joint draw `draw` (from 1; they repeat after the last), or the best one for 0."""
        if draw <= 0 or not self.draws:
            return self.value
        return self.value * self.draws[(draw - 1) % len(self.draws)]


_SESSION = NormalDist()


def _even(draw: int) -> float:
    """Numbers between 0 and 1 any first so many of which lie evenly (van der Corput's): 1/2, 1/4, 3/4, 1/8, ..."""
    found, part = 0.0, 0.5
    while draw:
        found += part * (draw & 1)
        draw, part = draw >> 1, part / 2
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedModel:
    """The constants of one model.

    Parameters
    ----------
    title, series : str
        In words, and the series that it was fitted to.
    points : int
        Points that were fitted.
    error, scatter : float
        Mean relative error, and robust deviation of the log residuals, of those points [1].
    between : float
        Standard deviation of the logarithm of what a measuring session shares; 0 if there was only one [1].
    constant : mapping of str to FittedConstant
    fixed : mapping of str to float
        Constants without intervals of their own: those that were not fitted, and the factors of a lattice with the
        spreads about them.
    held_out : tuple of str
        Keys of points that were kept out of the fit.
    note : str
        Why it should be doubted.
    """

    title: str = ""
    series: str = ""
    points: int
    error: float
    scatter: float
    between: float = 0.0
    constant: Mapping[str, FittedConstant] = field(default_factory=dict)
    fixed: Mapping[str, float] = field(default_factory=dict)
    held_out: tuple[str, ...] = ()
    note: str = ""

    @property
    def drawn(self) -> bool:
        """Whether it is a lattice with spreads, whose draws are made where a shape is costed."""
        return "lattice" in self.fixed and "alike" in self.fixed

    def at(self, draw: int = 0) -> dict[str, float]:
        """All constants at a joint draw, fixed ones too.

        A draw stands for a session too: all its times are longer, and all its rates lower, by one factor.
        """
        found = {name: one.at(draw) for name, one in self.constant.items()}
        if draw > 0 and self.between:
            pace = exp(self.between * _SESSION.inv_cdf(_even(draw)))
            for name, one in self.constant.items():
                found[name] *= pace if one.unit in ("s", "s/B") else 1.0 / pace if one.unit.endswith("/s") else 1.0
        if draw > 0 and self.drawn:
            found["draw"] = float(draw)
        return {**self.fixed, **found}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfilePart(Part):
    """Fitted constants by model; a scenario names it under ``[calibration]``.

    Constants of ``kernel.FAMILY-PRECISION`` cost the operations of GPUs, those of ``frontend`` replace the frontend's,
    ``copy.KIND`` gives rates of copies, ``link.NAME`` those of a link; others are there for people and programs.

    Parameters
    ----------
    gpu : str
        The GPU of the catalogue that was measured; empty if its constants hold for any.
    dataset : str
        Title of the data set.
    made, machine, versions : mapping
        How, on what and with what it was measured and fitted.
    model : mapping of str to FittedModel
    file : str
        That it was read from.
    """

    KIND: ClassVar[str] = "profile"

    gpu: str = ""
    dataset: str = ""
    made: Mapping[str, Any] = field(default_factory=dict, hash=False)
    machine: Mapping[str, Any] = field(default_factory=dict, hash=False)
    versions: Mapping[str, str] = field(default_factory=dict, hash=False)
    model: Mapping[str, FittedModel] = field(default_factory=dict, hash=False)
    file: str = ""

    def numbers(self) -> dict[str, tuple[float, str]]:
        """Every constant: ``model.constant`` to (value, dimension)."""
        found = {}
        for name, model in self.model.items():
            for key, one in model.constant.items():
                found[f"{name}.{key}"] = (one.value, "1" if one.unit == "s/B" else one.unit)
            if not model.constant:  # a lattice
                found |= {f"{name}.{key}": (value, "1") for key, value in model.fixed.items()}
        return found

    @property
    def draws(self) -> int:
        """Joint samples that are there."""
        found = (len(one.draws) for model in self.model.values() for one in model.constant.values())
        return max((*found, *(_LATTICE_DRAWS for model in self.model.values() if model.drawn)), default=0)

    def kernels(self, draw: int = 0) -> dict[str, dict[str, float]]:
        """Constants of `simperf.cost.FittedRoofline` by ``family-precision`` and kind."""
        head = "kernel."
        late = self._late(draw)
        if "run.longer" in self.model:
            late |= {"longer": self.model["run.longer"].at(draw)["longer"]}
        return {
            name.removeprefix(head): {**found, **(late if found.get("processor") else {})}
            for name, found in ((name, model.at(draw)) for name, model in self.model.items() if name.startswith(head))
        }

    def _late(self, draw: int) -> dict[str, float]:
        """What calls cost more that come late, where it was measured: the mean of forward and backward pass."""
        passes = [self.model.get(f"call.mixed.{name}") for name in ("forward", "backward")]
        found = [model.at(draw) for model in passes if model is not None]
        return {key: sum(one[key] for one in found) / len(found) for key in ("late", "late_at") if found}

    def frontend(self, draw: int = 0) -> dict[str, Any]:
        """Fields of a frontend part that were fitted."""
        return frontend_fields({name: model.at(draw) for name, model in self.model.items()})

    def device(self, draw: int = 0) -> dict[str, Any]:
        """Fields of a GPU part that were fitted."""
        return device_fields({name: model.at(draw) for name, model in self.model.items()})

    def calls(self, draw: int = 0) -> dict[str, Any]:
        """Fields of `simperf.cost.ProcessorCalls` that were fitted, and the last cache of the CPU; empty for a GPU."""
        if not any(one.fixed.get("processor") for one in self.model.values()):
            return {}
        found = call_fields({name: model.at(draw) for name, model in self.model.items()})
        return found | ({"cache": float(self.machine["l3"])} if "l3" in self.machine else {})

    def collectives(self, draw: int = 0) -> list[dict[str, Any]]:
        """Fields of each `simperf.cost.MeasuredCollective` that was measured by NCCL."""
        found = (collective_fields(name, model.at(draw)) for name, model in self.model.items())
        return [{**one, "gpu": self.gpu, "source": self.file or self.name} for one in found if one]

    def network_stack(self, draw: int = 0) -> dict[str, float]:
        """Fields of a network stack's part that were fitted."""
        model = self.model.get(NETWORK_STACK)
        known = (*NetworkStackPart.UNITS, "efficiency")
        return {} if model is None else {key: value for key, value in model.at(draw).items() if key in known}

    def adjusted(self, part: Part, draw: int = 0) -> Part:
        """`part` with the constants that were fitted for it; itself if there are none."""
        if isinstance(part, FrontendPart):
            found = self.frontend(draw)
            return replace(part, sources=self._told(part, found), **found) if found else part
        if isinstance(part, LinkPart):
            return self._link(part, draw)
        if isinstance(part, NetworkStackPart):
            stack: dict[str, Any] = self.network_stack(draw)
            return replace(part, sources=self._told(part, stack), **stack) if stack else part
        if isinstance(part, GpuPart) and self.gpu in ("", part.name):
            values = self.device(draw)
            return replace(part, sources=self._told(part, values), **values) if values else part
        return part

    def _link(self, part: LinkPart, draw: int) -> Part:
        values: dict[str, Any] = {}
        fitted = self.model.get(f"link.{part.name}") or self.model.get(f"link.{part.technology}")
        if fitted is not None:
            known = fitted.at(draw)
            values = {key: known[key] for key in ("latency", "protocol_efficiency") if key in known}
            rate = known.get("bandwidth")
        else:
            pinned = [name for name in ("copy.h2d-pinned", "copy.d2h-pinned") if name in self.model]
            rate = max((self.model[name].at(draw)["bandwidth"] for name in pinned), default=None)
            if part.technology != "pcie" or part.lanes < 8:
                rate = None
        if rate is not None:
            best = part.bandwidth / part.protocol_efficiency
            if rate <= best:
                values["protocol_efficiency"] = rate / best
        return replace(part, sources=self._told(part, values), **values) if values else part

    @property
    def told(self) -> str:
        """Source of a number that is this profile's."""
        return f"profile {self.name}: fitted to {self.dataset}"

    def _told(self, part: Part, values: Mapping[str, float]) -> dict[str, str]:
        """Sources of a part whose fields `values` come from this profile."""
        return {**part.sources, **dict.fromkeys(values, self.told)}


def fitted_models(tables: Mapping[str, Any]) -> dict[str, FittedModel]:
    """The ``[model]`` tables of a profile's file, as `simperf.hardware.schema` read them."""
    found = {}
    for name, table in tables.items():
        constants = {key: FittedConstant(**dict(one)) for key, one in table.constant.items()}
        found[name] = FittedModel(**{**dict(table), "constant": constants})
    return found
