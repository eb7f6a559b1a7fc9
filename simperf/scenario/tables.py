"""The tables of a scenario that name things: the machine, the frontend, the program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from os.path import isfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simperf.errors import InputError, MachineError, Problem, SimperfError, UnknownNameError, nearest
from simperf.execution import FREE, FrontendPart
from simperf.files import TomlFile
from simperf.hardware import Catalog, Machine, build_machine
from simperf.programs import PROGRAMS, ProgramSpec
from simperf.scenario.calibration import adjusted
from simperf.scenario.schema import CalibrationTable, read_table

if TYPE_CHECKING:
    from simperf.hardware import ProfilePart

__all__ = ["TableReader"]

_PROGRAM = '[program] with use = "async-chain" (see `simperf programs`), or python = "file.py:function"'
Key = tuple[str | int, ...]


class TableReader:
    """Reads the tables of one file and of its variants, each catalog and each Python file once.

    What is wrong is added to the `problems` that a method is given.

    Parameters
    ----------
    folder : Path
        Folder of the file, where its own parts and Python files are looked up.
    code : bool
        Whether a Python file that it names is run; otherwise its text is read.
    """

    def __init__(self, folder: Path, *, code: bool = True) -> None:
        self.folder, self.code = folder, code
        self._catalogs: dict[str, Catalog] = {}
        self._programs: dict[str, ProgramSpec] = {}
        self._profiles: dict[str, ProfilePart] = {}
        self._calibrated: dict[tuple[int, tuple[str, ...], int], Catalog] = {}
        self._changed: dict[int, dict[str, set[str]]] = {}

    def catalog(self, table: dict[str, Any], toml: TomlFile, problems: list[Problem]) -> Catalog:
        """Parts to build of: the built-in ones, and those of the ``folder`` that `table` names (taken out of it)."""
        folder = table.pop("folder", "")
        at = ("machine", "folder")
        if not isinstance(folder, str):
            problems.append(toml.problem(at, 'the path of a folder is expected, such as "parts"', value=folder))
            folder = ""
        if folder not in self._catalogs:
            try:
                self._catalogs[folder] = Catalog.load([self.folder / folder] if folder else [])
            except InputError as error:
                problems.append(toml.problem(at, "the folder's parts cannot be read", value=folder))
                problems += error.problems
                return Catalog.load()
        return self._catalogs[folder]

    def machine(
        self, table: dict[str, Any], catalog: Catalog, toml: TomlFile, problems: list[Problem]
    ) -> Machine | None:
        """The machine that the table names or wires."""
        at: Key = ("machine",)
        use = table.pop("use", None)
        if any(problem.key == "machine.folder" for problem in problems):
            return None  # the parts that it needs may be those that could not be read
        try:
            if use is None and not table:
                problems.append(
                    toml.problem(at, "the machine is empty", expected='use = "dgx-1v", or [[machine.node]] tables')
                )
            elif use is None and len(table) == 1 and isinstance(table.get("server", table.get("cluster")), str):
                ((key, name),) = table.items()
                message = "a machine is named by `use`"
                problems.append(toml.problem((*at, key), message, value=name, expected=f'use = "{name}"'))
            elif use is None:
                return build_machine(table, catalog, toml)
            elif table:
                problems += [toml.problem((*at, key), _beside_use(key)) for key in table]
            elif not isinstance(use, str):
                problems.append(toml.problem((*at, "use"), 'a name is expected, such as "dgx-1v"', value=use))
            else:
                return catalog.machine(use)
        except UnknownNameError as error:
            problems.append(toml.problem((*at, "use"), str(error), expected="a name of `simperf catalog list`"))
        except InputError as error:
            problems += error.problems
        except MachineError as error:
            problems += [toml.problem((*at, "use") if use else at, line) for line in str(error).splitlines()]
        return None

    def profiles(
        self, table: CalibrationTable, catalog: Catalog, toml: TomlFile, problems: list[Problem]
    ) -> tuple[ProfilePart, ...]:
        """The profiles that the table names: shipped ones, those of the folder, or files beside the scenario."""
        found = []
        for name in [table.use] if isinstance(table.use, str) else table.use:
            beside = self.folder / name
            if name not in self._profiles:
                try:
                    self._profiles[name] = catalog.profile(str(beside) if isfile(beside) else name)
                except UnknownNameError as error:
                    expected = 'a name of `simperf catalog list profile`, or the path of a file, such as "profile.toml"'
                    problems.append(toml.problem(("calibration", "use"), str(error), expected=expected))
                    continue
                except InputError as error:
                    problems += error.problems
                    continue
            found.append(self._profiles[name])
        return tuple(found)

    def calibrated(self, catalog: Catalog, profiles: Sequence[ProfilePart], draw: int) -> Catalog:
        """The catalog with the constants of `profiles` at a joint draw."""
        key = (id(catalog), tuple(profile.name for profile in profiles), draw)
        if key not in self._calibrated:
            changed: dict[str, set[str]] = {}
            made = catalog.adjusted(lambda part: adjusted(part, profiles, draw, changed=changed))
            self._calibrated[key], self._changed[id(made)] = made, changed
        return self._calibrated[key]

    def changed(self, catalog: Catalog) -> dict[str, frozenset[str]]:
        """Kind and name of the parts of `catalog` that each profile changed, of those that were read."""
        return {name: frozenset(parts) for name, parts in self._changed.get(id(catalog), {}).items()}

    def frontend(
        self,
        table: dict[str, Any],
        catalog: Catalog,
        toml: TomlFile,
        problems: list[Problem],
        *,
        base: FrontendPart | None = FREE,
    ) -> FrontendPart | None:
        """The frontend that the table names, with the numbers that it gives itself."""
        from simperf.hardware.kinds import MODELS

        use = table.pop("use", None)
        if use is not None:
            try:
                base = catalog.frontend(str(use))
            except UnknownNameError as error:
                problems.append(toml.problem(("frontend", "use"), str(error)))
            except InputError as error:
                problems += error.problems
        known = [key for key in MODELS["frontend"].model_fields if key not in ("kind", "title", "source")]
        unknown = [key for key in table if key not in known]
        for key in unknown:
            problems.append(toml.problem(("frontend", key), f"unknown key{nearest(key, ['use', *known])}"))
            del table[key]
        said = {"kind": "frontend", "title": "", **table}
        model = read_table(MODELS["frontend"], said, toml, ("frontend",), problems)
        if model is None or base is None:
            return None
        sources = {**base.sources, **dict.fromkeys(table, "the scenario")}
        return replace(base, sources=sources, **{key: getattr(model, key) for key in table})

    def program(
        self,
        given: Any,
        toml: TomlFile,
        problems: list[Problem],
        *,
        job_tables: Mapping[str, Any] | None = None,
        machine: Machine | None = None,
    ) -> tuple[ProgramSpec | None, dict[str, Any]]:
        """The program that the table names, and its parameters, with the `job_tables` such as ``[model]``."""
        from simperf.programs.adapters import read_parameters

        at: Key = ("program",)
        table = dict(given) if isinstance(given, dict) else {}
        use, python = table.pop("use", None), table.pop("python", None)
        if (use is None) == (python is None):
            message = "the table is missing" if given is None else "no program is named"
            message = "use and python are both there: one of them is expected" if use is not None else message
            problems.append(toml.problem(at, message, expected=_PROGRAM))
            return None, {}
        key = (*at, "use" if python is None else "python")
        name = use if python is None else python
        if not isinstance(name, str):
            problems.append(toml.problem(key, "a text in quotes is expected", value=name, expected=_PROGRAM))
            return None, {}
        try:
            spec = PROGRAMS[name] if python is None else self._own(name, list(table))
        except InputError as error:
            problems += [p if p.file else toml.problem(key, p.message, expected=p.expected) for p in error.problems]
            return None, {}
        except SimperfError as error:
            problems.append(toml.problem(key, str(error), expected="one of " + ", ".join(PROGRAMS)))
            return None, {}
        more: dict[str, Any] = {}
        before = len(problems)
        if job_tables:
            from simperf.scenario.model_and_layout import add_layout, add_model, name_model

            strategy = _strategy_named(table, job_tables)
            if "layout" in job_tables:
                more |= add_layout(job_tables["layout"], spec, table, toml, machine, problems, strategy=strategy)
            before = len(problems)
            if "model" in job_tables:
                more |= add_model(job_tables["model"], spec, table, toml, self.folder, problems, strategy=strategy)
            elif strategy == "model-parallel" and "model" in table:
                more |= name_model(table, toml, self.folder, problems)
        own = {name: given for name, given in (job_tables or {}).items() if name not in ("model", "layout")}
        if own or (spec.options is not None and table.get("strategy") == "servers"):
            from simperf.scenario.job_tables import add_job_tables

            spec = add_job_tables(own, spec, table, toml, problems)
        values = read_parameters(spec, table, toml, at, problems)
        if spec.options is None or len(problems) > before:
            return spec, {**values, **more}
        try:
            given = {**{name: values[name] for name in table}, **more}
            return spec, spec.options.completed(given, folder=self.folder)
        except InputError as error:
            problems += [
                p if p.file else toml.problem((*at, p.key), p.message, value=p.value, expected=p.expected)
                for p in error.problems
            ]
        return None, {}

    def _own(self, reference: str, given: Sequence[str]) -> ProgramSpec:
        if not self.code:
            from simperf.scenario.python_source import read_program

            return read_program(reference, self.folder, given=given)
        if reference not in self._programs:
            from simperf.scenario.python_program import load_program

            self._programs[reference] = load_program(reference, self.folder)
        return self._programs[reference]


def _strategy_named(table: Mapping[str, Any], job_tables: Mapping[str, Any]) -> str:
    """The strategy's name, by ``[strategy] kind`` or the program's key; empty if there is none."""
    given = job_tables.get("strategy")
    return str((given.get("kind") if isinstance(given, Mapping) else None) or table.get("strategy", ""))


def _beside_use(key: str) -> str:
    if key in ("node", "link", "server", "count", "group", "fabric", "name"):
        return "a machine has either use = ..., or tables of its own, not both"
    hint = nearest(key, ("use", "folder"))
    return f"unknown key beside use{hint}"


def frontend_of_stack(name: str) -> dict[str, Any]:
    """The ``[frontend]`` of a scenario that has none, by its stack."""
    from simperf.programs.stack_file import load_stack

    frontend = load_stack(name).frontend
    return {"use": frontend} if frontend else {}
