"""Words of a shell script, and its variables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from simperf.errors import InputError, Problem
from simperf.frameworks.shell_arithmetic import whole_value

__all__ = ["ShellToken", "Variables", "tokens"]

#: characters of all words that variables are put into, and of one variable
_MOST_EXPANDED = 4_000_000
_LONGEST = 1_000_000
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ASSIGNED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?)=")
_OPERATORS = ("&&", "||", ";;", "\n", ";", "&", "|", "(", ")")
_SPACE = " \t\r"
#: brackets in one another
_DEEPEST = 50


@dataclass(frozen=True, slots=True)
class ShellToken:
    """A word of a script, or an operator between words.

    Parameters
    ----------
    text : str
        As written, quotes included, until variables are put in.
    line : int
        1-based.
    operator : str
        Empty for a word.
    items : tuple of ShellToken
        Of a list that is assigned.
    unset : tuple of str
        Variables of the word that have no value.
    """

    text: str
    line: int = 0
    operator: str = ""
    items: tuple[ShellToken, ...] | None = None
    unset: tuple[str, ...] = ()

    @property
    def quoted(self) -> bool:
        """Whether the word is quoted."""
        return self.text[:1] in "\"'" and bool(self.text)

    @property
    def assigned(self) -> bool:
        """Whether the word gives a variable a value."""
        return _ASSIGNED.match(self.text) is not None


def tokens(text: str, file: str) -> Iterator[ShellToken]:
    """Words and operators of a script; comments, redirections and documents in it are left out.

    Raises
    ------
    InputError
        A quote or a list that is not closed.
    """
    at, line, end = 0, 1, len(text)
    awaited: list[str] = []
    while at < end:
        if text[at] in _SPACE:
            at += 1
        elif text.startswith(("\\\n", "\\\r\n"), at):
            at, line = text.index("\n", at) + 1, line + 1
        elif text[at] == "#":
            at = _line_end(text, at)
        elif text[at] == "\n":
            yield ShellToken("", line, operator="\n")
            at, line = at + 1, line + 1
            while awaited:
                skipped = _document_end(text, at, awaited.pop(0))
                line, at = line + text.count("\n", at, skipped), skipped
        elif text[at] in "<>":
            found = re.compile(r"<<-?\s*([\"']?)(\w+)\1").match(text, at)
            if found:
                awaited.append(found.group(2))
                at = found.end()
            else:
                at += 1
                yield ShellToken("", line, operator=">")
        elif operator := next((one for one in _OPERATORS if text.startswith(one, at)), ""):
            yield ShellToken("", line, operator=operator)
            at += len(operator)
        else:
            stop = _word_end(text, at, file, line)
            word = text[at:stop]
            assigned = _ASSIGNED.fullmatch(word)
            if assigned and text.startswith("(", stop):
                close = _list_end(text, stop, file, line)
                inside = [
                    replace(one, line=one.line + line - 1)
                    for one in tokens(text[stop + 1 : close], file)
                    if not one.operator
                ]
                yield ShellToken(word, line, items=tuple(inside))
                line, at = line + text.count("\n", at, close), close + 1
            else:
                yield ShellToken(word, line)
                line, at = line + text.count("\n", at, stop), stop


def _line_end(text: str, at: int) -> int:
    found = text.find("\n", at)
    return len(text) if found < 0 else found


def _document_end(text: str, at: int, name: str) -> int:
    """Where the line that ends a document in the script is over."""
    found = re.compile(rf"^\s*{re.escape(name)}\s*$", re.MULTILINE).search(text, at)
    return len(text) if found is None else found.end()


def _word_end(text: str, at: int, file: str, line: int) -> int:
    """End of a word that begins at `at`."""
    begin, end = at, len(text)
    while at < end and text[at] not in _SPACE + "\n;&|()<>":
        if text[at] == "\\":
            at += 2
        elif text[at] in "\"'`":
            at = _quote_end(text, at, file, line)
        elif text.startswith("$((", at) or text.startswith("$(", at):
            at = _closed(text, at + 1, "(", ")", file, line)
        elif text.startswith("${", at):
            at = _closed(text, at + 1, "{", "}", file, line)
        else:
            at += 1
    return max(min(at, end), begin + 1)


def _quote_end(text: str, at: int, file: str, line: int) -> int:
    """Place behind the quote that closes one."""
    quote, here = text[at], at + 1
    while here < len(text):
        if text[here] == "\\" and quote != "'":
            here += 2
        elif quote == '"' and text.startswith(("$(", "${"), here):
            here = _closed(text, here + 1, text[here + 1], ")" if text[here + 1] == "(" else "}", file, line)
        elif text[here] == quote:
            return here + 1
        else:
            here += 1
    raise InputError(Problem("a quote that is not closed", file=file, line=line, expected=f"a closing {quote}"))


def _closed(text: str, at: int, opening: str, closing: str, file: str, line: int) -> int:
    """Place behind the bracket that closes the one at `at`."""
    depth = 0
    for here in range(at, len(text)):
        if text[here] == opening:
            depth += 1
            if depth > _DEEPEST:
                message, expected = "brackets in one another without an end", f"at most {_DEEPEST}"
                raise InputError(Problem(message, file=file, line=line, expected=expected))
        elif text[here] == closing:
            depth -= 1
            if not depth:
                return here + 1
    raise InputError(Problem("a bracket that is not closed", file=file, line=line, expected=f"a closing {closing}"))


def _list_end(text: str, at: int, file: str, line: int) -> int:
    """Place of the bracket that closes a list, past quotes and comments."""
    here, depth = at, 0
    while here < len(text):
        letter = text[here]
        if letter == "#" and text[here - 1] in _SPACE + "\n(":
            here = _line_end(text, here)
        elif letter in "\"'`":
            here = _quote_end(text, here, file, line)
        elif letter == "\\":
            here += 2
        else:
            depth += (letter == "(") - (letter == ")")
            if not depth:
                return here
            here += 1
    raise InputError(Problem("a list that is not closed", file=file, line=line, expected="a closing )"))


class Variables:
    """The variables of a script: texts, and lists of words.

    Parameters
    ----------
    file : str
        For messages.
    given : mapping of str to str
        Values from outside, which go before the script's own.
    """

    def __init__(self, file: str, given: Mapping[str, str]) -> None:
        self._file, self._given = file, dict(given)
        self._values: dict[str, list[ShellToken]] = {name: [ShellToken(value)] for name, value in given.items()}
        self._spent = 0

    def lists(self) -> list[list[ShellToken]]:
        """Words of each variable."""
        return list(self._values.values())

    def assign(self, token: ShellToken) -> None:
        """Take an assignment."""
        found = _ASSIGNED.match(token.text)
        assert found is not None
        name, more = found.group(1), bool(found.group(2))
        if name in self._given:
            return
        if token.items is not None:
            words = [part for one in token.items for part in self.expanded(one)]
            self._values[name] = [*self._values.get(name, []), *words] if more else words
            self._spent += len(self._values[name])
            self._bound(sum(len(one.text) for one in self._values[name]), token.line)
            return
        parts = self.expanded(replace(token, text=token.text[found.end() :]), split=False)
        unset = tuple(name for part in parts for name in part.unset)
        value = " ".join(part.text for part in parts)
        if more and name in self._values:
            value = " ".join(one.text for one in self._values[name]) + value
        self._spent += len(value)
        self._bound(len(value), token.line)
        self._values[name] = [ShellToken(value, token.line, unset=unset)]

    def expanded(self, token: ShellToken, *, split: bool = True) -> list[ShellToken]:
        """Words of a word with its variables put in and its quotes taken off; the line stays the word's.

        Parameters
        ----------
        token : ShellToken
        split : bool
            Whether what stands outside of quotes is split at blanks.
        """
        words: list[str] = []
        unset: list[str] = []
        open_ = False
        for text, literal, whole in self._parts(token.text, token.line, unset):
            self._spent += len(text)
            self._bound(len(text), token.line)
            if literal or not split:
                words = [*words, ""] if not open_ else words
                words[-1] += text
                open_ = True
                continue
            pieces = text.split() if not whole else text.split("\0")
            if text[:1].isspace() or not open_:
                open_ = False
            for piece in pieces:
                if open_:
                    words[-1] += piece
                else:
                    words.append(piece)
                open_ = False
            open_ = bool(pieces) and not text[-1:].isspace()
        if not words and unset:
            words = [""]
        return [ShellToken(word, token.line, unset=tuple(unset)) for word in words]

    def _parts(self, text: str, line: int, unset: list[str]) -> Iterator[tuple[str, bool, bool]]:
        """Parts of a word: text, whether it was quoted, and whether its words are divided by zeros."""
        at, plain = 0, ""
        while at < len(text):
            letter = text[at]
            if letter == "\\" and at + 1 < len(text):
                plain += "" if text[at + 1] == "\n" else text[at + 1]
                at += 2
                continue
            if letter not in "\"'$`":
                plain += letter
                at += 1
                continue
            if plain:
                yield plain, True, False
                plain = ""
            if letter == "'":
                stop = _quote_end(text, at, self._file, line)
                yield text[at + 1 : stop - 1], True, False
                at = stop
            elif letter == '"':
                stop = _quote_end(text, at, self._file, line)
                inside = text[at + 1 : stop - 1]
                if _whole_list(inside):
                    name = inside[2:-4]
                    yield "\0".join(one.text for one in self._values.get(name, ())), False, True
                else:
                    yield "".join(one for one, _, _ in self._inside(inside, line, unset)), True, False
                at = stop
            elif letter == "`":
                stop = _quote_end(text, at, self._file, line)
                unset.append(text[at:stop][:40])
                at = stop
            else:
                value, at, whole = self._dollar(text, at, line, unset)
                yield value, False, whole
        if plain:
            yield plain, True, False

    def _inside(self, text: str, line: int, unset: list[str]) -> Iterator[tuple[str, bool, bool]]:
        """Parts of what stands in double quotes."""
        at, plain = 0, ""
        while at < len(text):
            if text[at] == "\\" and at + 1 < len(text):
                plain += "" if text[at + 1] == "\n" else text[at + 1]
                at += 2
            elif text[at] == "$":
                value, at, _ = self._dollar(text, at, line, unset)
                plain += value.replace("\0", " ")
            else:
                plain += text[at]
                at += 1
        yield plain, True, False

    def _dollar(self, text: str, at: int, line: int, unset: list[str]) -> tuple[str, int, bool]:
        """Value of what begins with a dollar, the place behind it, and whether it is a list of words."""
        if text.startswith("$((", at):
            stop = _closed(text, at + 1, "(", ")", self._file, line)
            return self._arithmetic(text[at + 3 : stop - 2], line, unset), stop, False
        if text.startswith("$(", at):
            stop = _closed(text, at + 1, "(", ")", self._file, line)
            unset.append(text[at:stop][:40])
            return "", stop, False
        if text.startswith("${", at):
            stop = _closed(text, at + 1, "{", "}", self._file, line)
            value, whole = self._braced(text[at + 2 : stop - 1], line, unset)
            return value, stop, whole
        found = _NAME.match(text, at + 1)
        name = found.group() if found else text[at + 1 : at + 2]
        if not name:
            return "$", at + 1, False
        return self._value(name, unset), at + 1 + len(name), False

    def _braced(self, inside: str, line: int, unset: list[str]) -> tuple[str, bool]:
        found = _NAME.match(inside) or re.match(r"[0-9@*]+", inside)
        if not found:
            unset.append(f"${{{inside[:40]}}}")
            return "", False
        name, rest = found.group(), inside[found.end() :]
        if rest in ("[@]", "[*]"):
            return "\0".join(one.text for one in self._values.get(name, ())), True
        for mark in (":-", ":=", "-", "="):
            if rest.startswith(mark):
                if self._values.get(name) and any(one.text for one in self._values[name]):
                    return self._value(name, unset), False
                told = self.expanded(ShellToken(rest[len(mark) :], line), split=False)
                return " ".join(one.text for one in told), False
        if rest:
            unset.append(f"${{{inside[:40]}}}")
            return "", False
        return self._value(name, unset), False

    def _value(self, name: str, unset: list[str]) -> str:
        if name not in self._values:
            unset.append(name)
            return ""
        unset += [one for each in self._values[name] for one in each.unset]
        return " ".join(one.text for one in self._values[name])

    def _arithmetic(self, text: str, line: int, unset: list[str]) -> str:
        """Value of a whole-number expression; empty where it has none."""
        plain = re.sub(r"\$?\{?([A-Za-z_]\w*)\}?", lambda found: self._value(found.group(1), unset) or "?", text)
        return whole_value(plain)

    def _bound(self, size: int, line: int) -> None:
        if size > _LONGEST or self._spent > _MOST_EXPANDED:
            message = "variables of the script grow too long"
            expected = f"at most {_LONGEST:,} characters each, {_MOST_EXPANDED:,} together"
            raise InputError(Problem(message, file=self._file, line=line, expected=expected))


def _whole_list(text: str) -> bool:
    return re.fullmatch(r"\$\{[A-Za-z_]\w*\[[@*]\]\}", text) is not None
