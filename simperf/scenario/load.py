"""From a file to a scenario: every table checked, all problems said at once."""

from __future__ import annotations

import datetime
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simperf.errors import CONTROL, InputError, Problem, UnknownNameError, nearest
from simperf.execution import MODES
from simperf.files import DEEPEST, TomlFile, dotted, is_endless, read_toml, refuse_other
from simperf.scenario.answer import read_answer
from simperf.scenario.calibration import cost_settings, free
from simperf.scenario.expectation import Key, read_expectations
from simperf.scenario.overrides import Changes, Override, apply, parse_changes, profile_override, variant_overrides
from simperf.scenario.schema import (
    CalibrationTable,
    CostTable,
    ExecutionTable,
    HeadTable,
    RunTable,
    VariantTable,
    read_table,
)
from simperf.scenario.settings import Scenario
from simperf.scenario.tables import TableReader, frontend_of_stack

if TYPE_CHECKING:
    from simperf.hardware import ProfilePart

__all__ = ["TABLES", "change_scenario", "load_scenario", "make_scenario", "pick_variant", "redraw"]

#: the tables of a scenario's file
TABLES = (
    *("scenario", "machine", "calibration", "frontend", "execution", "cost", "model", "layout", "program"),
    *("strategy", "devices", "input", "disturbances", "failures"),
    *("run", "expect", "measured", "compare"),
)
#: it lifts limits, and changes nothing of what is simulated
_FORCE = ("run", "force")
#: tables that belong to the program
_JOB_TABLES = ("model", "layout", "strategy", "devices", "input", "disturbances", "failures")
#: tables that say nothing about what is run
_SILENT = ("expect", "measured", "compare")


def load_scenario(
    path: str | os.PathLike[str],
    overrides: Changes = (),
    *,
    seed: int | None = None,
    variant: str = "",
    profile: ProfilePart | str | os.PathLike[str] | None = None,
    code: bool = True,
) -> Scenario:
    """Read a scenario's file.

    Parameters
    ----------
    path : path
        The file, or the name of a shipped scenario, such as ``"d2l/sync-160mb"``.
    overrides : mapping or sequence of str
        Values of keys, such as ``{"program.nbytes": "320 MB"}``, or texts such as ``"program.nbytes=320 MB"``.
    seed : int, optional
        Instead of the file's.
    variant : str
        Name of one of its ``[[compare]]`` variants, to have that alone.
    profile : ProfilePart or path, optional
        Fitted constants that stand for the catalogue's, in place of those that ``[calibration]`` names.
    code : bool
        Whether the Python file that it names is run, which defines its program. Without it the file is read, and the
        scenario can be checked, not run.

    Raises
    ------
    InputError
        All that is wrong with the file and the overrides.
    """
    from simperf.scenario.shipped import find_scenario

    toml = read_toml(find_scenario(path), bounded=False)
    refuse_other(toml, "program")
    scenario = _Loader(toml, _overrides(overrides, seed, profile), Path(toml.path).parent, code=code).load()
    return pick_variant(scenario, variant) if variant else scenario


def _overrides(
    changes: Changes, seed: int | None, profile: ProfilePart | str | os.PathLike[str] | None
) -> list[Override]:
    """All that a caller changes."""
    seeds = [] if seed is None else [Override(("run", "seed"), seed, option="seed")]
    return [*parse_changes(changes), *seeds, *([] if profile is None else [profile_override(profile)])]


def pick_variant(scenario: Scenario, name: str, *, option: str = "variant") -> Scenario:
    """The [[compare]] variant of that name; `option` is what names it, for the message.

    Raises
    ------
    InputError
        There is none of that name.
    """
    for variant in scenario.variants:
        if variant.name == name:
            return variant
    names = [variant.name for variant in scenario.variants]
    hint = nearest(name, names, show=0)
    expected = "one of " + ", ".join(repr(each) for each in names) if names else f"no {option}: the file has none"
    message = f"no such variant{hint if 'mean' in hint else ''}"
    raise InputError(Problem(message, file=option, value=repr(name), expected=expected))


def change_scenario(
    scenario: Scenario,
    changes: Changes = (),
    *,
    seed: int | None = None,
    profile: ProfilePart | str | os.PathLike[str] | None = None,
) -> Scenario:
    """Make a scenario again with other values, without its variants; the parameters are those of `load_scenario`.

    Raises
    ------
    InputError
        Values that it does not take; a scenario that was not made of a file or of plain data.
    """
    overrides = _overrides(changes, seed, profile)
    if not overrides:
        return scenario
    if "program" not in scenario.data:
        message = "the scenario was not made of a file or of plain data, so that it cannot be made again"
        raise InputError(
            Problem(message, file=overrides[0].option, expected="load_scenario(...) or make_scenario({...})")
        )
    folder = Path(scenario.path).parent if scenario.path else Path()
    made = _Loader(TomlFile("", dict(scenario.data), ""), overrides, folder).load()
    changed = (*scenario.changes, *overrides)
    return replace(made, name=scenario.name, title=scenario.title, path=scenario.path, changes=changed)


def make_scenario(data: Mapping[str, Any], *, folder: str | os.PathLike[str] = ".") -> Scenario:
    """Make a scenario of plain data, which has the tables and keys of a file.

    Parameters
    ----------
    data : mapping
    folder : path
        Where its own parts and Python files are looked up.

    Raises
    ------
    InputError
        All that is wrong with it.

    Examples
    --------
    >>> make_scenario({"program": {"use": "async-chain", "n": 100}}).parameters["t2"]
    2e-06
    """
    if not isinstance(data, Mapping):
        message = f"the tables of a scenario are expected, not {type(data).__name__}"
        raise InputError(Problem(message, value=repr(data), expected='a mapping, such as {"program": {...}}'))
    if is_endless(data):
        raise InputError(
            Problem(f"tables and lists in one another to a depth of more than {DEEPEST}", expected=f"at most {DEEPEST}")
        )
    return _Loader(TomlFile("", dict(data), ""), [], Path(folder)).load()


def redraw(scenario: Scenario, draw: int) -> Scenario:
    """Make `scenario` again with joint draw `draw` (from 1) of its profiles' constants."""
    data = {key: value for key, value in scenario.data.items() if key not in _SILENT}
    data["calibration"] = {**data.get("calibration", {}), "draw": draw}
    folder = Path(scenario.path).parent if scenario.path else Path()
    made = _Loader(TomlFile(scenario.path, data, ""), [], folder).load()
    variants = tuple(redraw(variant, draw) for variant in scenario.variants)
    kept = {"name": scenario.name, "title": scenario.title, "seed": scenario.seed, "changes": scenario.changes}
    return replace(made, variants=variants, **kept)  # type: ignore[arg-type]


class _Loader:
    """Reads one file and its variants, and remembers what they share."""

    def __init__(self, toml: TomlFile, overrides: list[Override], folder: Path, *, code: bool = True) -> None:
        self.toml, self.overrides, self.tables = toml, overrides, TableReader(folder, code=code)

    def load(self) -> Scenario:
        """Make the scenario with its variants."""
        problems: list[Problem] = []
        data, layered = apply(self.toml.data, self.toml, self.overrides, problems)
        odd = list(_odd(data, (), layered))
        data = _clamped(data) if odd else data
        scenario = self._scenario(data, layered, problems, name="")
        problems = odd + [p for p in problems if all((p.file, p.key) != (o.file, o.key) for o in odd)]
        if problems or scenario is None:
            # variants are only held against a sound base: what is wrong there would be said once a variant
            self._variants(data, layered, problems, base=None)
            raise InputError(_in_order(problems))
        variants = self._variants(data, layered, problems, base=scenario)
        if problems:
            raise InputError(_in_order(problems))
        simulated = [o for o in self.overrides if o.path[0] not in ("scenario", *_SILENT) and o.path != _FORCE]
        changed = any(data.get(key) != self.toml.data.get(key) for key in {str(o.path[0]) for o in simulated})
        if changed:
            variants = tuple(replace(v, overridden=True, expectations=(), measurements=()) for v in variants)
            scenario = replace(scenario, overridden=True, expectations=(), measurements=())
        own = tuple(self.overrides)
        return replace(scenario, variants=tuple(replace(one, changes=own) for one in variants), changes=own)

    def _scenario(self, data: dict[str, Any], toml: TomlFile, problems: list[Problem], *, name: str) -> Scenario | None:
        before = len(problems)
        for key, value in data.items():
            if key not in TABLES:
                problems.append(_unknown_table(key, value, toml))
            elif not isinstance(value, list if key == "compare" else dict):
                shape = "a list of [[compare]] tables" if key == "compare" else f"a table [{key}]"
                problems.append(toml.problem((key,), f"{shape} is expected", value=value))
        tables = {key: dict(data[key]) if isinstance(data.get(key), dict) else {} for key in TABLES}
        head = read_table(HeadTable, tables["scenario"], toml, ("scenario",), problems)
        execution = read_table(ExecutionTable, tables["execution"], toml, ("execution",), problems)
        cost = read_table(CostTable, tables["cost"], toml, ("cost",), problems)
        run = read_table(RunTable, tables["run"], toml, ("run",), problems)
        if execution is not None and execution.mode not in MODES:
            error = UnknownNameError("execution mode", execution.mode, MODES)
            choices = "one of " + ", ".join(MODES)
            problems.append(toml.problem(("execution", "mode"), str(error), expected=choices))
        catalog = self.tables.catalog(tables["machine"], toml, problems)
        calibration = read_table(CalibrationTable, tables["calibration"], toml, ("calibration",), problems)
        profiles: tuple[ProfilePart, ...] = ()
        if calibration is not None and "calibration" in data:
            profiles = self.tables.profiles(calibration, catalog, toml, problems)
            if profiles:
                catalog = self.tables.calibrated(catalog, profiles, calibration.draw)
        machine = self.tables.machine(tables["machine"], catalog, toml, problems) if "machine" in data else None
        base = free(profiles, calibration.draw if calibration else 0)
        program, parameters = self.tables.program(
            data.get("program"),
            toml,
            problems,
            job_tables={key: data[key] for key in _JOB_TABLES if key in data},
            machine=machine,
        )
        if "frontend" not in data and parameters.get("stack"):
            try:
                tables["frontend"] = frontend_of_stack(parameters["stack"])
            except UnknownNameError as error:
                problems.append(toml.problem(("program", "stack"), str(error), value=parameters["stack"]))
        frontend = self.tables.frontend(tables["frontend"], catalog, toml, problems, base=base)
        expectations = read_expectations(
            tables["expect"], toml, ("expect",), problems, source=head.source if head is not None else ""
        )
        measurements = read_expectations(tables["measured"], toml, ("measured",), problems, measured=True)
        if len(problems) > before:
            return None
        assert head is not None
        assert execution is not None
        assert cost is not None
        assert run is not None
        assert program is not None
        assert frontend is not None
        assert calibration is not None
        title = head.title or Path(toml.path).stem or program.name
        return Scenario(
            name=name or title,
            title=title,
            question=head.question,
            answer=read_answer(head.answer, toml),
            rows=tuple(head.rows),
            source=head.source,
            notes=head.notes.strip(),
            machine=machine,
            frontend=frontend,
            mode=execution.mode,
            cost=cost_settings(cost, profiles, calibration.draw),
            program=program,
            parameters=parameters,
            seed=run.seed,
            force=run.force,
            expectations=expectations,
            measurements=measurements,
            case=head.case,
            fitted=head.fitted,
            path=toml.path,
            data={key: value for key, value in data.items() if key != "compare"},
            profiles=profiles,
            adjusted=self.tables.changed(catalog),
        )

    def _variants(
        self, data: dict[str, Any], toml: TomlFile, problems: list[Problem], *, base: Scenario | None
    ) -> tuple[Scenario, ...]:
        rows = data.get("compare", [])
        data = {key: value for key, value in data.items() if key != "compare"}  # else each variant copies all of them
        head, names = data.get("scenario"), set[str]()
        source = str(head.get("source", "")) if isinstance(head, dict) else ""
        found: list[Scenario] = []
        told = {problem.key for problem in problems}
        for index, row in enumerate(rows if isinstance(rows, list) else []):
            at: Key = ("compare", index)
            table = read_table(VariantTable, row, toml, at, problems)
            if table is None:
                continue
            if table.name in names:
                problems.append(toml.problem((*at, "name"), f"two variants are called {table.name!r}"))
            wrong: list[Problem] = []
            read_expectations(table.expect, toml, (*at, "expect"), wrong, source=source)
            read_expectations(table.measured, toml, (*at, "measured"), wrong, measured=True)
            given = variant_overrides(table.set, (*at, "set"), toml, wrong)
            # below a value that is wrong itself nothing can be set
            overrides = [one for one in given if told.isdisjoint(dotted(one.path[:n]) for n in range(1, len(one.path)))]
            changed, layered = apply(data, toml, overrides, wrong)
            wrong += _odd(changed, (), layered)
            problems += wrong
            if base is None or wrong:
                continue
            changed = {key: value for key, value in changed.items() if key not in _SILENT}
            variant = self._scenario(changed, layered, wrong, name=table.name)
            problems += [self._in_variant(problem, table.name, toml, at) for problem in wrong]
            if variant is not None:
                expectations = read_expectations(table.expect, toml, (*at, "expect"), wrong, source=source)
                measurements = read_expectations(table.measured, toml, (*at, "measured"), wrong, measured=True)
                names.add(variant.name)
                found.append(replace(variant, title=base.title, expectations=expectations, measurements=measurements))
        return tuple(found)

    def _in_variant(self, problem: Problem, name: str, toml: TomlFile, at: Key) -> Problem:
        """Place a problem that a variant brings about elsewhere in the file at the variant."""
        if problem.key.startswith(dotted(at)) or problem.file != toml.path:
            return problem
        message = f"with the variant {name!r}: {problem.key}: {problem.message}"
        return replace(toml.problem((*at, "set"), message, expected=problem.expected), value=problem.value)


def _unknown_table(key: str, value: Any, toml: TomlFile) -> Problem:
    hint = nearest(key, TABLES)
    expected = (
        ""
        if not key or isinstance(value, dict) or "mean" in hint
        else f"[program] {key} = ..., on the command line program.{key}"
    )
    return toml.problem((key,), f"unknown table{hint}", expected=expected)


def _odd(value: Any, key: Key, toml: TomlFile) -> Iterator[Problem]:
    """Values that TOML knows and no scenario means: not a number, infinite, dates, control characters."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _odd(name, (*key, name), toml) if CONTROL.search(str(name)) else _odd(item, (*key, name), toml)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _odd(item, (*key, index), toml)
    elif isinstance(value, str) and (found := CONTROL.search(value)):
        message = f"a text with the control character U+{ord(found.group()):04X}"
        yield toml.problem(key, message, value=value, expected="a text that a terminal shows as it is")
    elif isinstance(value, float) and not math.isfinite(value):
        yield toml.problem(key, "a finite number is expected", value=value)
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        yield toml.problem(key, "a whole number of at most 64 bits is expected")
    elif isinstance(value, datetime.date | datetime.time):
        yield toml.problem(key, "a date is no value here", value=str(value), expected="a number or a text in quotes")


def _clamped(value: Any) -> Any:
    """A value whose whole numbers readers can compare with floats, so that the rest of a file can be checked, too."""
    if isinstance(value, Mapping):
        return {key: _clamped(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_clamped(item) for item in value]
    if isinstance(value, int) and not isinstance(value, bool):
        return max(-(2**63), min(value, 2**63 - 1))
    return value


def _in_order(problems: Sequence[Problem]) -> list[Problem]:
    """By line, each once."""
    return sorted(dict.fromkeys(problems), key=lambda problem: (problem.file, problem.line))
