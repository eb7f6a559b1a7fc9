"""Prices of an hour of an instance: of the catalogue, with their dates, or of a list of one's own."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from simperf.errors import InputError, UnitError, nearest
from simperf.files import TomlFile, read_toml
from simperf.hardware import Catalog
from simperf.study.planning.reader import RequestTable
from simperf.units import parse

__all__ = ["PriceList", "other_price", "own_prices", "read_prices"]

_KINDS = ("on_demand", "capacity_block")
_NAMES = {"on_demand": "a price", "capacity_block": "a price of kind capacity_block"}


@dataclass(frozen=True, slots=True)
class PriceList:
    """Prices by instance [USD/h], and for each who asked it, where and when; NaN, and why, where there is none."""

    prices: Mapping[str, float]
    sources: Mapping[str, str]

    def __contains__(self, name: str) -> bool:
        return not math.isnan(self.prices.get(name, math.nan))

    def of(self, name: str) -> float:
        """Price of one instance [USD/h]; NaN where there is none."""
        return self.prices[name]

    def told(self, name: str) -> str:
        """Price of one instance as text, such as ``"12.240 USD/h"``."""
        return f"{self.of(name):.3f} USD/h" if name in self else "no price"


def read_prices(
    table: RequestTable, instances: Sequence[str], catalog: Catalog, folder: Path, *, needed: str = ""
) -> PriceList:
    """Prices of all instances: those of the file's ``own`` table, else of its price file, else of the catalogue.

    A price file has ``date`` and ``source``, and a table ``[price]`` of instances. What is wrong is added to the
    table's problems, and a price that is missing where something, which `needed` says, cannot be without.
    """
    kind = table.choice("kind", _KINDS, "on_demand")
    prices: dict[str, float] = {}
    sources: dict[str, str] = {}
    name = table.text("file")
    if name:
        try:
            toml = read_toml(folder / name)
        except InputError as error:
            table.problems += error.problems
        else:
            found = _entries(toml, ("price",), toml.data.get("price", {}), table)
            said = ", ".join(str(toml.data[key]) for key in ("source", "date") if key in toml.data)
            if "date" not in toml.data:
                table.problems.append(toml.problem((), "the prices have no date", expected='date = "2026-01"'))
            prices |= found
            sources |= dict.fromkeys(found, said or name)
    own = own_prices(table, instances)
    prices |= own
    sources |= dict.fromkeys(own, "a price of your own")
    for instance in instances:
        if instance in prices:
            continue
        price, source = _of_catalog(catalog, instance, kind)
        if price is None and not needed:
            prices[instance] = math.nan
            other = other_price(catalog, instance, kind)
            why = f"no cost is named: the catalogue has no dated source of {_NAMES[kind]}"
            sources[instance] = f"{why}; {other}" if other else why
            continue
        if price is None:
            message = f"there is no {_NAMES[kind].partition(' ')[2]} for {instance!r}, which {needed} needs"
            other = other_price(catalog, instance, kind)
            message += f"; {other}" if other else ""
            table.problems.append(
                table.toml.problem(
                    ("candidates", "instances"), message, expected=f'[prices] own = {{ {instance} = "10 USD/h" }}'
                )
            )
            continue
        prices[instance], sources[instance] = price, source
    return PriceList(prices, sources)


def own_prices(table: RequestTable, servers: Sequence[str]) -> dict[str, float]:
    """Prices of the file's ``own`` table by server [USD/h]; one of no server of the plan is a problem of the table."""
    found = _entries(table.toml, ("prices", "own"), table.data.get("own", {}), table)
    for name in [each for each in found if each not in servers]:
        message = f"a price of no server of the plan{nearest(name, servers)}"
        table.wrong(("own", name), message, expected='the price of one server, as in dgx-h100 = "80 USD/h"')
    return {name: price for name, price in found.items() if name in servers}


def other_price(catalog: Catalog, instance: str, kind: str = "on_demand") -> str:
    """Price of another kind of an instance in the catalogue where it has none of a kind; empty if there is none."""
    for other in _KINDS if instance in catalog.names("server") else ():
        price, source = _of_catalog(catalog, instance, other)
        if other != kind and price is not None:
            return f"{price:g} USD/h is its price of kind {other} ({source})"
    return ""


def _of_catalog(catalog: Catalog, instance: str, kind: str) -> tuple[float | None, str]:
    quoted = catalog.file("server", instance).data.get("price") or {}
    price = quoted.get(kind)
    asked = {key: quoted.get(f"{kind}_{key}") or quoted.get(key) for key in ("source", "region", "date")}
    said = ", ".join(str(value) for value in asked.values() if value)
    return (None if price is None else parse(price, "USD/h")), said


def _entries(toml: TomlFile, at: tuple[str, ...], given: object, table: RequestTable) -> dict[str, float]:
    if not isinstance(given, dict):
        table.problems.append(toml.problem(at, "a table of prices is expected", value=given))
        return {}
    found = {}
    for name, value in given.items():
        try:
            price = parse(value, "USD/h")
            if price <= 0:
                raise UnitError("a price is above 0")
            found[str(name)] = price
        except UnitError as error:
            table.problems.append(toml.problem((*at, name), str(error), value=value))
    return found
