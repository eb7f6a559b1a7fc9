"""Arguments of a command in a shell script, with the script's variables put in; nothing of the script is run.

What is read: assignments, also of lists (``ARGS=(...)``, ``ARGS+=(...)``), quotes, ``$NAME``, ``${NAME:-default}``,
``${NAME[@]}``, whole-number arithmetic, and ``if`` with tests of texts. Loops, functions, other commands and what
stands in files beside are not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from simperf.errors import InputError, Problem
from simperf.frameworks.options import GivenOption
from simperf.frameworks.shell_words import ShellToken, Variables, tokens

__all__ = ["arguments_of", "job_arguments"]

#: a command that has one of these is the job
_OF_A_JOB = ("--num-layers", "--hidden-size", "--tensor-model-parallel-size")
_DECLARE = ("export", "declare", "local", "readonly", "typeset")
_SKIPPED = {"for": "done", "while": "done", "until": "done", "case": "esac", "select": "done"}
_LOOP = ("for", "while", "until", "select")


def job_arguments(text: str, file: str, variables: Mapping[str, str]) -> tuple[list[GivenOption], list[str]]:
    """Options of the training command of a script, or of a file of arguments alone; and what was not read.

    Parameters
    ----------
    text : str
        Of the script.
    file : str
        Its name, for messages.
    variables : mapping of str to str
        Values that the script gets from outside.

    Raises
    ------
    InputError
        No command has arguments of Megatron-LM; or the script is too large for what it is.
    """
    script = _Script(file, dict(variables))
    try:
        script.play(list(tokens(text, file)))
    except RecursionError:
        message = "commands in one another without an end"
        raise InputError(Problem(message, file=file, expected="a script whose tests stand side by side")) from None
    for words in (*reversed(script.commands), *script.variables.lists()):
        found = _with_parts(words)
        if any(one.text in _OF_A_JOB for one in found):
            return arguments_of(found), script.notes
    message = "no command has arguments of Megatron-LM"
    expected = "a script whose command has --num-layers, --hidden-size, ...; or a file of such arguments"
    raise InputError(Problem(message, file=file, expected=expected))


def arguments_of(words: Sequence[ShellToken]) -> list[GivenOption]:
    """Options of a command's words: what follows an option up to the next one is its value."""
    found: list[GivenOption] = []
    name, line, values, unset = "", 0, list[str](), list[str]()
    for word in (*words, ShellToken("--")):
        if word.text.startswith("--"):
            if name:
                found.append(GivenOption(name, tuple(values), None, line, tuple(unset)))
            name, equals, value = word.text.partition("=")
            line, values, unset = word.line, [value] if equals else [], list(word.unset)
        elif name:
            values += [word.text] if word.text else []
            unset += word.unset
            if word.text.endswith(".py"):  # the program, after the options of what starts it
                found.append(GivenOption(name, tuple(values[:-1]), None, line, tuple(unset)))
                name, values, unset = "", [], []
    return found


def _with_parts(words: Sequence[ShellToken]) -> list[ShellToken]:
    """Words, and those of a text that is a command itself, as for ``sh -c``."""
    found = []
    for word in words:
        inside = " " in word.text.strip() and (" --" in word.text or word.text.lstrip().startswith("--"))
        parts = word.text.split() if inside else [word.text]
        found += [ShellToken(part.strip("\"'") if inside else part, word.line, unset=word.unset) for part in parts]
    return found


@dataclass
class _Script:
    """Follows a script from line to line."""

    file: str
    given: dict[str, str]
    commands: list[list[ShellToken]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.variables = Variables(self.file, self.given)

    def play(self, found: Sequence[ShellToken]) -> None:
        """Follow tokens to their end."""
        alone = next((one for one in found if not one.operator), None)
        if alone is not None and alone.text.startswith("--"):  # a file of arguments alone
            self._command([one for one in found if not one.operator])
            return
        place = 0
        while place < len(found):
            place = self._statement(found, place)

    def _statement(self, found: Sequence[ShellToken], place: int) -> int:
        """Follow one statement; returns where the next one begins."""
        first = found[place]
        if first.operator:
            return place + 1
        if first.text in _SKIPPED and not first.quoted:
            end = _closing(found, place, first.text)
            self.notes.append(f"{first.text} (line {first.line}): not read: no loop or case of a script is")
            return end
        if first.text == "if" and not first.quoted:
            return self._condition(found, place)
        if _is_function(found, place):
            self.notes.append(f"{first.text} (line {first.line}): not read: no function of a script is")
            return _closing(found, place, "{")
        end = _end(found, place)
        self._command(list(found[place:end]))
        return end

    def _condition(self, found: Sequence[ShellToken], place: int) -> int:
        """Follow the branch of an ``if`` whose test holds."""
        end = _closing(found, place, "if")
        branches = list(_branches(found, place, end))
        for test, begin, stop in branches:
            holds = True if not test else self._holds(test)
            if holds is None:
                line = found[place].line
                self.notes.append(f"if (line {line}): not read: its test is not one of texts; --variable may settle it")
                break
            if holds:
                at = begin
                while at < stop:
                    at = self._statement(found, at)
                break
        return end

    def _holds(self, test: Sequence[ShellToken]) -> bool | None:
        """Whether a test of texts holds; None for any other."""
        for index, one in enumerate(test):
            if one.operator in ("||", "&&"):
                first, second = self._holds(test[:index]), self._holds(test[index + 1 :])
                if first is None or second is None:
                    return None
                return first or second if one.operator == "||" else first and second
        words = [one for one in test if not one.operator]
        if not words or words[0].text not in ("[", "[[", "test"):
            return None
        closing = words[-1].text in ("]", "]]")
        texts = [" ".join(part.text for part in self.variables.expanded(one, split=False)) for one in words[1:]]
        texts = texts[:-1] if closing else texts
        negated = texts[:1] == ["!"]
        texts = texts[1:] if negated else texts
        holds = _test(texts)
        return holds if holds is None else holds != negated

    def _command(self, words: list[ShellToken]) -> None:
        """Take assignments, or keep a command with its variables put in."""
        while words and words[0].text in _DECLARE and not words[0].quoted:
            words = words[1:]
        while words and words[0].assigned:
            self.variables.assign(words[0])
            words = words[1:]
        if words:
            self.commands.append([part for one in words for part in self.variables.expanded(one)])


def _test(texts: Sequence[str]) -> bool | None:
    """Whether a test of one text or two holds."""
    if len(texts) == 2 and texts[0] in ("-n", "-z"):
        return bool(texts[1]) == (texts[0] == "-n")
    if len(texts) == 3 and texts[1] in ("=", "==", "!="):
        return (texts[0] == texts[2]) == (texts[1] != "!=")
    numbers = {"-eq": 0, "-ne": 1, "-gt": 2, "-ge": 3, "-lt": 4, "-le": 5}
    if len(texts) == 3 and texts[1] in numbers:
        try:
            first, second = int(texts[0]), int(texts[2])
        except ValueError:
            return None
        return (first == second, first != second, first > second, first >= second, first < second, first <= second)[
            numbers[texts[1]]
        ]
    return None


def _is_function(found: Sequence[ShellToken], place: int) -> bool:
    if found[place].text == "function" and not found[place].quoted:
        return True
    return place + 2 < len(found) and found[place + 1].operator == "(" and found[place + 2].operator == ")"


def _end(found: Sequence[ShellToken], place: int) -> int:
    """End of a command."""
    while place < len(found) and not found[place].operator:
        place += 1
    return place


def _closing(found: Sequence[ShellToken], place: int, opening: str) -> int:
    """Place behind what closes a compound statement."""
    pairs = {**_SKIPPED, "if": "fi", "{": "}"}
    depth = 0
    close = pairs[opening]
    opens = _LOOP if opening in _LOOP else (opening,)
    for at in range(place, len(found)):
        word = found[at]
        if word.quoted or word.operator:
            continue
        begins = at == 0 or bool(found[at - 1].operator) or found[at - 1].text in ("do", "then", "else", "{")
        if word.text in opens and (begins or opening == "{"):
            depth += 1
        elif word.text == close:
            depth -= 1
            if depth <= 0:
                return at + 1
    return len(found)


def _branches(found: Sequence[ShellToken], place: int, end: int) -> Iterator[tuple[Sequence[ShellToken], int, int]]:
    """Test, beginning and end of each branch of an ``if``; no test for ``else``."""
    depth, at = 0, place + 1
    test_from, body_from, test = at, -1, list[ShellToken]()
    for at in range(place + 1, end):
        word = found[at]
        if word.quoted or word.operator:
            continue
        if word.text == "if":
            depth += 1
        elif word.text == "fi" and depth:
            depth -= 1
        elif not depth and word.text == "then":
            test = [one for one in found[test_from:at] if one.operator not in ("\n", ";")]
            body_from = at + 1
        elif not depth and word.text in ("elif", "else", "fi"):
            if body_from >= 0:
                yield test, body_from, at
            test_from, test, body_from = at + 1, [], at + 1 if word.text == "else" else -1
