"""Messages of refused commands: each names a place and what would be right."""

import errno
import os
import re

__all__ = ["RIGHT", "blocks", "unhelpful"]

_OPTION = re.compile(r"(?<![\w-])--?[a-zA-Z][\w-]*|No such option: -")
#: an argument as the parser names it, and a variable of the environment
_ARGUMENT = re.compile(r"'\{?[A-Z][A-Z_.]+(?:\.\.\.|\})*'|SIMPERF_[A-Z]+")
#: a file at the head of a message, by the end of its name
_FILE = re.compile(r"^(?:[^\n]*?: )?\S+\.(?:toml|json|py|csv|txt|jsonl|journal|gz)(?::\d+)?: ")
#: a key of a scenario at the head of a message
_KEY = re.compile(r'^[\w-]+(?:\.(?:"[^"]*"|[\w -]+)|\[\d+\])+(?::| )')
#: words that say what would be right
RIGHT = re.compile(
    "|".join(
        (
            *("expected: ", "did you mean", "known: ", "none is known", "Possible options", "`simperf", '= "..."'),
            *(
                "one of",
                "none of",
                "is expected",
                "are expected",
                "must (?:be|have) ",
                "should be ",
                "either ",
                "as in ",
                "needs? ",
                "missing",
            ),
            *("at most", "at least", r"from -?[\d.]+ to ", r"above [\d-]", "in the range", "cannot be ", "not an? "),
            *(r"\bno (?:name|unit|number|float|picture|list|files?|such)\b", "there is no", "unexpected extra"),
            *(r"\b(?:write|give|add|use|name the) ", "belongs to", "twice", "the same file", "two variants", ", but "),
        )
    ),
    re.I,
)
#: letters of a word that a message repeats
_REPEATED = 100
_SYSTEM = {os.strerror(number) for number in errno.errorcode}


def blocks(err):
    """The errors of a command, each with the lines below it."""
    found = re.split(r"^(?=error: )", err, flags=re.M)
    return [block.removeprefix("error: ") for block in found if block.startswith("error: ")]


def unhelpful(err, names, arguments):
    """The first error that does not say where, or not what would be right, with which of these; or nothing.

    Parameters
    ----------
    err : str
        Standard error.
    names : iterable of str
        Files that the command can have read.
    arguments : iterable of str
        Words of the command line behind the command's own name.
    """
    for block in blocks(err):
        if re.match(r"(?:\S+: )?and \d+ problems more$", block.strip()):  # those that are told have their places
            continue
        if "pip install " in block:  # what is missing is no input
            continue
        told = block.split("\nUsage: ")[0]
        if not _has_place(told.split("\n    expected: ")[0], names, arguments):
            return "no place", block[:300]
        if not (RIGHT.search(told) or any(each in told for each in _SYSTEM)):
            return "no way out", block[:300]
    return "", ""


def _has_place(head, names, arguments):
    """Whether a message begins with a file, an option or a key, or names one that was given."""
    given = [*names, *(one for one in arguments if not re.match(r"--?[a-zA-Z]", one))]
    said = {*given, *map(_escaped, given)}
    for one in filter(None, said):
        begins = (f"{one}:", f"{one}/") if len(one) < _REPEATED else (one[:_REPEATED],)
        if head.startswith(begins) or _quoted(one) in head or f"/{one}:" in head or f"argument(s) ({one})" in head:
            return True
    return any((_OPTION.search(head), _ARGUMENT.search(head), _FILE.match(head), _KEY.match(head)))


def _escaped(word):
    """A word as messages repeat it where it is no UTF-8, or has characters that are not printed."""
    letters = word.encode("utf-8", "backslashreplace").decode("utf-8")
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in letters)


def _quoted(word):
    """A word as messages repeat it: the beginning of a long one."""
    return repr(word) if len(word) < _REPEATED else repr(word)[:_REPEATED]
