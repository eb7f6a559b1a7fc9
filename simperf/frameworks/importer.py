"""From a framework's configuration to a scenario: ``simperf import``."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from simperf.errors import CONTROL, InputError, Problem, nearest
from simperf.file_bytes import read_text
from simperf.frameworks.deepspeed import deepspeed_options, draft_deepspeed
from simperf.frameworks.draft import JobDraft
from simperf.frameworks.imported import ImportedJob
from simperf.frameworks.megatron import draft_megatron
from simperf.frameworks.nemo import draft_nemo, nemo_options, nemo_table
from simperf.frameworks.options import GivenOption, JobOptionsRead, OptionTable, option_table, raise_problems
from simperf.frameworks.shell import arguments_of, job_arguments
from simperf.frameworks.shell_words import ShellToken
from simperf.frameworks.source import JobSource
from simperf.frameworks.torchtitan import draft_torchtitan, torchtitan_options
from simperf.scenario.overrides import Changes
from simperf.workload.transformers.hugging_face import read_config
from simperf.workload.transformers.shipped import shipped_transformers
from simperf.workload.transformers.transformer_file import transformer_table

__all__ = ["FRAMEWORKS", "import_job"]

#: bytes of a script [B]
_MOST_SCRIPT = 256 * 1024
#: words of a list of arguments, and characters of each
_MOST_WORDS, _LONGEST = 20_000, 100_000


class FrameworkReader(NamedTuple):
    """Reader of the configuration of a framework.

    Parameters
    ----------
    table : callable
        Makes the table of its options.
    read : callable
        Gives the options of a source, and what was not read.
    draft : callable
        Drafts the scenario.
    """

    table: Callable[[], OptionTable]
    read: Callable[[JobSource], tuple[list[GivenOption], list[str]]]
    draft: Callable[..., None]


def import_job(
    source: str | os.PathLike[str] | Sequence[str],
    framework: str = "auto",
    *,
    on: str = "",
    gpus: int = 0,
    model: str | os.PathLike[str] = "",
    variables: Mapping[str, str] | None = None,
    changes: Changes = (),
) -> ImportedJob:
    """Make a scenario of a training job's configuration.

    Parameters
    ----------
    source : path or sequence of str
        A file, or a list: arguments of a Megatron-LM command, or key=value words of NeMo.
    framework : str
        One of `FRAMEWORKS`; ``"auto"`` for what the file looks like.
    on : str
        Server or cluster of the catalogue; by default one is assumed, and the scenario says so.
    gpus : int
        Of the job; 0 for what the configuration says.
    model : path
        Model of a configuration that has none, as DeepSpeed's: a name of the zoo, or a ``config.json``.
    variables : mapping of str to str, optional
        Values that a script gets from outside.
    changes : mapping or sequence of str
        Values of the scenario that the configuration does not have, such as ``{"model.vocabulary": 128256}``.

    Raises
    ------
    InputError
        All that is missing, contradicts, or cannot be simulated, with file, line and option.

    Examples
    --------
    >>> arguments = "--num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 --bf16"
    >>> job = import_job([*arguments.split(), "--micro-batch-size", "2"], on="dgx-h100", gpus=8)
    >>> job.tables["program"]["batch"]
    16
    """
    from_list = not isinstance(source, str | os.PathLike)
    path = "" if from_list else os.fspath(source)  # type: ignore[arg-type]
    words = _words(source) if from_list else ()  # type: ignore[arg-type]
    if gpus < 0 or gpus > 10**7:
        raise InputError(Problem("a number of GPUs is expected", file="--gpus", value=str(gpus)))
    name = _framework(framework, path, words)
    reader = FRAMEWORKS[name]
    given, unread = reader.read(JobSource(path, words, dict(variables or {})))
    options = JobOptionsRead(path or "arguments", reader.table())
    if name == "nemo":
        options.unnamed = given
    else:
        options.read(given)
    options.notes += unread
    draft = JobDraft(options, changes)
    title = os.path.splitext(os.path.basename(path))[0] if path else f"A job of {options.table.title}"
    draft.tables["scenario"] = {
        "title": CONTROL.sub(" ", title) or f"A job of {options.table.title}",
        "question": "How long does a step take, and what limits it?",
        "answer": {"metric": "time per step", "better": "lower"},
    }
    if model:
        draft.tables["model"] = _model(os.fspath(model), name)
    reader.draft(options, draft, gpus=gpus, on=on)
    raise_problems(options.problems)
    draft.finished()
    scenario = draft.scenario()
    notes = tuple(dict.fromkeys(options.notes))
    head = [f"Made by simperf import of {os.path.basename(path) or 'arguments'} ({options.table.title})."]
    head += [f"Names and defaults: {options.table.source}."]
    if notes:
        head += ["", "Not simulated, or not understood:", *(f"- {note}" for note in notes)]
    text = draft.text(head)
    return ImportedJob(name, draft.tables, text, scenario, notes, tuple(options.without_effect))


def _words(source: Sequence[str]) -> tuple[str, ...]:
    """The words of a list of arguments."""
    words = tuple(source)
    if not all(isinstance(one, str) for one in words):
        odd = next(one for one in words if not isinstance(one, str))
        message = f"arguments are texts, not {type(odd).__name__}"
        raise InputError(Problem(message, value=repr(odd), expected='such as ["--num-layers", "32"]'))
    if len(words) > _MOST_WORDS or any(len(one) > _LONGEST for one in words):
        message, expected = "too many arguments, or too long ones", f"at most {_MOST_WORDS:,}"
        raise InputError(Problem(message, expected=expected))
    return words


def _model(given: str, framework: str) -> dict[str, Any]:
    """The ``[model]`` table of a name, or of a ``config.json``."""
    if framework != "deepspeed":
        message, expected = f"has no effect: {framework} says its model", "--set model.KEY=VALUE"
        raise InputError(Problem(message, file="--model", value=given, expected=expected))
    if given.endswith(".json") or os.path.isdir(given):
        table = transformer_table(read_config(given))
    elif given in shipped_transformers():
        table = {"name": given}
    else:
        message = f"no such model by its dimensions{nearest(given, shipped_transformers())}"
        expected = "a name of `simperf zoo list`, or the path of a config.json"
        raise InputError(Problem(message, file="--model", value=given, expected=expected))
    return {key: value for key, value in table.items() if key != "format"}


def _framework(name: str, path: str, words: Sequence[str]) -> str:
    """The framework that a file is of."""
    if name != "auto":
        if name not in FRAMEWORKS:
            message = f"no such framework{nearest(name, FRAMEWORKS)}"
            raise InputError(Problem(message, file="--framework", value=name, expected=", ".join(FRAMEWORKS)))
        return name
    if not path:
        return "megatron" if any(one.startswith("--") for one in words) else "nemo"
    return _BY_ENDING.get(os.path.splitext(path)[1].lower(), "megatron")


def _read_megatron(source: JobSource) -> tuple[list[GivenOption], list[str]]:
    """Options of a script or of a list of arguments."""
    if not source.path:
        if source.variables:
            message, expected = "has no effect: a list of arguments has no variables", "a script"
            raise InputError(Problem(message, file="--variable", expected=expected))
        return arguments_of([ShellToken(word) for word in source.words]), []
    expected = "a shell script that starts Megatron-LM, or a file of its arguments"
    text = read_text(source.path, most=_MOST_SCRIPT, log=True, expected=expected)
    return job_arguments(text, source.path, source.variables)


#: framework -> how its configuration is read
FRAMEWORKS: Mapping[str, FrameworkReader] = {
    "megatron": FrameworkReader(partial(option_table, "megatron"), _read_megatron, draft_megatron),
    "nemo": FrameworkReader(nemo_table, nemo_options, draft_nemo),
    "torchtitan": FrameworkReader(partial(option_table, "torchtitan"), torchtitan_options, draft_torchtitan),
    "deepspeed": FrameworkReader(partial(option_table, "deepspeed"), deepspeed_options, draft_deepspeed),
}
#: ending of a file -> framework
_BY_ENDING = {".toml": "torchtitan", ".json": "deepspeed", ".yaml": "nemo", ".yml": "nemo"}
