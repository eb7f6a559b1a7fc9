"""The language of pictures and pages: their words are looked up by gettext while they are drawn and written.

The words of a language are `languages/NAME/LC_MESSAGES/simperf.po`, compiled beside it by ``pybabel compile``; the
fonts that have its letters are in `languages/fonts.toml`. What a catalogue does not hold stays as it is, as names of
operations and of devices do.
"""

from __future__ import annotations

import contextlib
import functools
import gettext as catalogues
import re
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path

from simperf.errors import UnknownNameError
from simperf.files import read_toml

__all__ = [
    "DOMAIN",
    "FOLDER",
    "WIDE",
    "Language",
    "current",
    "font_of",
    "languages",
    "named",
    "say",
    "spoken",
    "worded",
]

#: name of the catalogues
DOMAIN = "simperf"
FOLDER = Path(__file__).with_name("languages")
#: letters of which one takes the room of almost two of Latin
WIDE = re.compile(r"[\u2e80-\u9fff\uff00-\uffef]")
_LETTERS = re.compile(r"[A-Za-z]")
#: ends of sentences and lines, then of clauses, then of items, kept
_ENDS = (re.compile(r"((?<=\.) |\n)"), re.compile(r"((?<=;) |\n)"))
#: a range of quantities, an item such as ``+2 ms kernel time``, and one such as ``weights 4 GB``
_AMOUNT = r"[\d.,]+ \S+"
_RANGE = re.compile(rf"({_AMOUNT}) to ({_AMOUNT})")
_MORE, _PART = re.compile(rf"\+({_AMOUNT}) ([a-z][a-z ]+)"), re.compile(rf"([a-z][a-z ]*) ([+-]?{_AMOUNT})")
#: a difference with what adds up to it: ``+2 ms: copy +3 ms, compute -1 ms``
_TOTAL = re.compile(rf"\+({_AMOUNT}): (.+)")
#: how a range and a difference are told; no phrases that a text is matched with, as their words stand in many
_TOLD_RANGE, _TOLD_TOTAL = "{} to {}", "+{}: {}"
#: patterns of names that engines and strategies give to tracks and spans
_NAMES = ("wait: {}", "to {}", "link {}", "stream{}", "stage {}", "exposed {}", "hidden {}")


@dataclass(frozen=True, slots=True)
class Language:
    """Language that pictures are drawn in.

    Parameters
    ----------
    name : str
        Such as ``"zh"``.
    catalogue : gettext.NullTranslations
        Its words.
    words : mapping of str to str
        More words, or better ones, with ``{}`` for what varies in a name.
    fonts : tuple of str
        Families that have its letters and are used.
    remark : str
        What is said below each picture; empty if nothing.
    """

    name: str = "en"
    catalogue: catalogues.NullTranslations = field(default_factory=catalogues.NullTranslations)
    words: Mapping[str, str] = field(default_factory=dict)
    fonts: tuple[str, ...] = ()
    remark: str = ""


_ENGLISH = Language()
_SPOKEN: ContextVar[Language] = ContextVar("spoken", default=_ENGLISH)


def current() -> Language:
    """The language that pictures are drawn in now."""
    return _SPOKEN.get()


def say(text: str) -> str:
    """A text in the current language; itself where the catalogue does not hold it.

    Examples
    --------
    >>> with spoken("zh", drawn=False):
    ...     say("time ({})").format("ms"), say("gpu0")
    ('时间（ms）', 'gpu0')
    """
    language = _SPOKEN.get()
    if not text:
        return text
    return language.words.get(text) or language.catalogue.gettext(text)


def named(name: str) -> str:
    """A name of a track, a span, a metric, in the current language, part by part where it is made of parts.

    Examples
    --------
    >>> with spoken("zh", drawn=False):
    ...     named("wait: launch queue full"), named("stream2"), named("y = x @ x")
    ('等待：启动队列已满', '流 2', 'y = x @ x')
    """
    language = _SPOKEN.get()
    told = say(name)
    if told != name or language.name == "en":
        return told
    for pattern in (*(word for word in language.words if "{}" in word), *_NAMES):
        head, _, tail = pattern.partition("{}")
        if name.startswith(head) and name.endswith(tail) and len(name) > len(head) + len(tail):
            return say(pattern).format(named(name[len(head) : len(name) - len(tail)]))
    return name


def worded(text: str) -> str:
    """A text of a page in the current language: as `named`, or by the phrase of the catalogue that it was made of.

    What stands in the place of ``{}`` is translated in the same way. A text of several lines or sentences that no
    phrase matches as a whole is translated sentence by sentence.

    Examples
    --------
    >>> with spoken("zh", drawn=False):
    ...     worded("Winner"), worded("gpu0 holds 3 GB"), worded("18 devices")
    ('最优方案', 'gpu0 holds 3 GB', '18 个设备')
    """
    language = _SPOKEN.get()
    if language.name == "en" or not _LETTERS.search(text):
        return text
    return _worded(text, language.name)


@functools.lru_cache(maxsize=4096)
def _worded(text: str, language: str) -> str:
    told = named(text)
    if told != text:
        return told
    if match := _RANGE.fullmatch(text):
        return say(_TOLD_RANGE).format(*match.groups())
    if match := _TOTAL.fullmatch(text):
        return say(_TOLD_TOTAL).format(match[1], _items(match[2]))
    for pattern, other in _phrases(language):
        if match := pattern.fullmatch(text):
            return other.format(*(worded(part) for part in match.groups()))
    for ends in _ENDS:
        parts = ends.split(text)
        if len(parts) > 1:
            return "".join(map(_clause, parts)).replace("； ", "；")
    return _items(text)


def _clause(text: str) -> str:
    """A part of a text, with its semicolon in the current language where it is translated without it."""
    told = worded(text)
    if told != text or not text.endswith(";"):
        return told
    told = worded(text[:-1])
    return text if told == text[:-1] else f"{told}；"


def _items(text: str) -> str:
    """A list with commas of amounts, if each of its items is one that can be translated; itself if not."""
    told = []
    for item in text.split(", "):
        if match := _MORE.fullmatch(item):
            amount, name = match.groups()
            told.append(f"{named(name)} +{amount}")
        elif match := _PART.fullmatch(item):
            name, amount = match.groups()
            told.append(f"{named(name)} {amount}")
        else:
            return text
    return "、".join(told)


@functools.cache
def _phrases(language: str) -> tuple[tuple[re.Pattern[str], str], ...]:
    """Phrases with something in the place of ``{}``, each with its translation; those that say most come first."""
    words: Mapping[str, str] = vars(_catalogue(language))["_catalog"]  # gettext has no public list of its messages
    found = [(one, other) for one, other in words.items() if "{}" in one and len(_LETTERS.findall(one)) > 1]
    found = [pair for pair in found if pair[0] != _TOLD_RANGE]
    found.sort(key=lambda pair: -len(pair[0]))
    return tuple((re.compile(re.escape(one).replace(r"\{\}", "(.+?)"), re.DOTALL), other) for one, other in found)


def languages() -> list[str]:
    """Languages that pictures can be drawn in."""
    return ["en", *sorted(path.parent.parent.name for path in FOLDER.glob(f"*/LC_MESSAGES/{DOMAIN}.mo"))]


@contextlib.contextmanager
def spoken(language: str, *, words: Mapping[str, str] | None = None, drawn: bool = True) -> Iterator[None]:
    """Context in which pictures are drawn in a language.

    Parameters
    ----------
    language : str
        One of `languages`.
    words : mapping of str to str, optional
        More words than the catalogue has, or better ones; ``{}`` in a name stands for what varies.
    drawn : bool
        Letters are drawn, so that a font which has them must be installed; without one pictures stay English and say
        why. False: they stay text (SVG in a page), and whoever looks at it has the font.

    Raises
    ------
    UnknownNameError
        There is no catalogue of that language.
    """
    token = _SPOKEN.set(_language(language, dict(words or {}), drawn=drawn))
    try:
        yield
    finally:
        _SPOKEN.reset(token)


def _language(name: str, words: Mapping[str, str], *, drawn: bool) -> Language:
    if name not in languages():
        raise UnknownNameError("language of pictures", name, languages())
    if name == "en":
        return Language(words=words)
    font = font_of(name)
    if font is None and drawn:
        remark = f"In English, since none of these fonts is installed: {', '.join(_fonts()[name])}."
        return Language(remark=remark)
    return Language(name, _catalogue(name), words, (font,) if font else ())


@functools.cache
def _catalogue(name: str) -> catalogues.NullTranslations:
    return catalogues.translation(DOMAIN, FOLDER, [name])


@functools.cache
def _fonts() -> Mapping[str, list[str]]:
    """Families by language, best first."""
    return read_toml(FOLDER / "fonts.toml").data


def font_of(language: str) -> str | None:
    """The first of a language's fonts that is installed here, or None.

    A font that was installed after matplotlib had made its list is found, too.
    """
    return _installed(tuple(_fonts().get(language, ())))


@functools.cache
def _installed(families: tuple[str, ...]) -> str | None:
    from matplotlib import font_manager

    manager = font_manager.fontManager

    def known() -> str | None:
        names = {entry.name for entry in manager.ttflist}
        return next((family for family in families if family in names), None)

    listed = {entry.fname for entry in manager.ttflist}
    if known() is None:
        for path in sorted(set(font_manager.findSystemFonts()) - listed):
            with contextlib.suppress(OSError, RuntimeError):  # not every file of a system is a font that can be read
                manager.addfont(path)
    return known()
