"""The catalog: parts, servers and clusters by name; machines are built from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simperf.errors import InputError, UnknownNameError
from simperf.files import TomlFile
from simperf.hardware.build import blueprint_of, server_blueprint
from simperf.hardware.fabric import ServerSlot
from simperf.hardware.machine import Machine
from simperf.hardware.part_catalog import CatalogFile, PartCatalog

__all__ = ["Catalog", "build_machine"]


class Catalog(PartCatalog):
    """Names of everything that a machine can be built of, each read once, when it is first asked for.

    Examples
    --------
    >>> catalog = Catalog.load()
    >>> catalog.gpu("v100-sxm2-16gb").memory_bandwidth
    900000000000.0
    >>> catalog.gpu("h100-sxm5")
    Traceback (most recent call last):
        ...
    simperf.errors.UnknownNameError: unknown gpu 'h100-sxm5'; did you mean 'h100-sxm5-80gb'...
    """

    def __init__(self, entries: Mapping[str, Mapping[str, CatalogFile]]) -> None:
        super().__init__(entries)
        self._machines: dict[str, Machine] = {}

    def machine(self, name: str) -> Machine:
        """Build the server or cluster `name`, once.

        Raises
        ------
        UnknownNameError, InputError, MachineError
            No such name; a wrong file; a machine that cannot exist.
        """
        if name not in self._machines:
            self._machines[name] = self._build(name)
        return self._machines[name]

    def _build(self, name: str) -> Machine:
        if name in self.names("server"):
            return Machine(name, [ServerSlot("n0", server_blueprint(name, self))])
        if name in self.names("cluster"):
            toml = self.file("cluster", name)
            return build_machine(toml.data, self, toml, name=name, at=())
        known = [*self.names("server"), *self.names("cluster")]
        raise UnknownNameError("machine", name, known, other=next(iter(self.kinds_of(name)), ""))


def build_machine(
    spec: Mapping[str, Any],
    catalog: Catalog,
    toml: TomlFile | None = None,
    *,
    name: str = "machine",
    at: tuple[str | int, ...] = ("machine",),
) -> Machine:
    """Build the machine that a table describes.

    Parameters
    ----------
    spec : Mapping
        ``{name = "dgx-1v"}``; a server: ``node`` and ``link`` lists; or a cluster: ``server`` (or ``group``),
        ``count`` and ``fabric``.
    catalog : Catalog
        Where the parts are looked up.
    toml : TomlFile or None
        File that the table comes from, for messages with lines.
    name : str
        Of the machine.
    at : tuple
        Key path of the table in the file.

    Raises
    ------
    InputError
        All that is wrong with the table.

    Examples
    --------
    >>> spec = {"node": [{"id": "gpu{0..3}", "gpu": "v100-pcie-16gb"}, {"id": "hub", "kind": "switch"}],
    ...         "link": [{"a": "gpu{0..3}", "b": "hub", "bandwidth": "16 GB/s", "latency": "1 us"}]}
    >>> build_machine(spec, Catalog.load()).route("gpu0", "gpu3").latency
    2e-06
    """
    source = toml or TomlFile("", {}, "")
    if "fabric" in spec or "group" in spec or spec.get("kind") == "cluster":
        from simperf.hardware.cluster import cluster_of

        return cluster_of(spec, catalog, source, name=name, at=at)
    if "node" not in spec and "name" in spec:
        extra = [key for key in spec if key != "name"]
        if extra:
            message, expected = "unknown key beside the name of a machine", "the name alone"
            raise InputError([source.problem((*at, key), message, expected=expected) for key in extra])
        try:
            return catalog.machine(str(spec["name"]))
        except UnknownNameError as error:
            raise InputError(source.problem((*at, "name"), str(error), value=spec["name"])) from None
    return Machine(name, [ServerSlot("n0", blueprint_of(name, spec, catalog, source, at))])
