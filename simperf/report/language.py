"""Pictures in other languages than English: what is written in a figure is looked up in a phrase book.

Drawing knows nothing of it. The phrase book of a language is `languages/NAME.toml`; what it does not hold stays as it
is, as names of operations and of devices do.
"""

from __future__ import annotations

import contextlib
import functools
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simperf.errors import UnknownNameError
from simperf.files import read_toml
from simperf.report.style import LETTERS, note

__all__ = ["Phrasebook", "font_of", "localize", "phrasebook"]

_FOLDER = Path(__file__).with_name("languages")
_WIDE = re.compile(r"[\u2e80-\u9fff\uff00-\uffef]")
#: wide characters in the room of a letter
_NARROWER = 0.55


@dataclass(frozen=True, slots=True)
class Phrasebook:
    """Words of a language.

    Parameters
    ----------
    language : str
    words : mapping of str to str
        English text to that in the language, with ``{}`` for what varies.
    fonts : tuple of str
        Families which have its characters, best first.
    """

    language: str
    words: Mapping[str, str]
    fonts: tuple[str, ...]

    def say(self, text: str) -> str:
        """The text in this language; what is not known, a name for instance, comes back as it was.

        Examples
        --------
        >>> phrasebook("zh").say("time (ms)"), phrasebook("zh").say("gpu0")
        ('时间（ms）', 'gpu0')
        """
        flat = " ".join(text.split("\n")).strip()
        if flat in self.words:
            return self.words[flat]
        holed = [english for english in self.words if "{}" in english]
        for english in sorted(holed, key=len, reverse=True):  # the longer pattern is the closer one
            found = None if english.endswith(".") else _pattern(english).fullmatch(flat)
            if found:
                return self._filled(self.words[english], found)
        said = flat
        for english in holed:
            if english.endswith("."):
                said = _pattern(english).sub(functools.partial(self._filled, self.words[english]), said)
        return text if said == flat else said

    def _filled(self, other: str, found: re.Match[str]) -> str:
        return other.format(*map(self.say, found.groups()))


@functools.lru_cache(maxsize=512)
def _pattern(english: str) -> re.Pattern[str]:
    hole = r"((?:(?!\. )[^。])+?)"  # within a sentence
    return re.compile(hole.join(re.escape(part) for part in english.split("{}")))


@functools.cache
def phrasebook(language: str) -> Phrasebook:
    """The phrase book that is shipped for a language.

    Raises
    ------
    UnknownNameError
        There is none.
    """
    known = {path.stem: path for path in sorted(_FOLDER.glob("*.toml"))}
    if language not in known:
        raise UnknownNameError("language of pictures", language, ["en", *known])
    data = read_toml(known[language]).data
    return Phrasebook(language, data["words"], tuple(data["fonts"]))


def font_of(book: Phrasebook) -> str | None:
    """The first of a language's fonts that is installed here, or None.

    A font that was installed after matplotlib had made its list is found, too.
    """
    return _installed(book.fonts)


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


def localize(figure: Any, language: str, *, words: Mapping[str, str] | None = None, drawn: bool = True) -> Any:
    """Put the words of a figure into a language.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        Changed in place.
    language : str
        ``"en"`` changes nothing.
    words : mapping of str to str, optional
        More words than the phrase book has, or better ones.
    drawn : bool
        Letters are drawn, so that a font which has them must be installed; without one the figure stays English and
        says why. False: they stay text (SVG in a page), and whoever looks at it has the font.

    Returns
    -------
    matplotlib.figure.Figure
        The same.

    Raises
    ------
    UnknownNameError
        There is no phrase book for that language.
    """
    if language == "en":
        return figure
    book = phrasebook(language)
    book = Phrasebook(language, {**book.words, **(words or {})}, book.fonts)
    font = font_of(book)
    if font is None and drawn:
        note(figure.axes[0], f"In English, since none of these fonts is installed: {', '.join(book.fonts)}.")
        return figure
    families = ["DejaVu Sans", *([font] if font else [])]
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        labels = [label.get_text() for label in axis.get_ticklabels()]
        names = [book.say(label) for label in labels]
        if names != labels:
            axis.set_ticklabels(names, fontfamily=families)
    notes = figure.get_supxlabel()
    for text in _texts(figure):
        english = text.get_text()
        told = book.say(english)
        if told == english:
            continue
        if english == notes:
            width = int(figure.get_figwidth() * LETTERS * _NARROWER)
            told = "\n".join(textwrap.wrap(told, width))
        text.set_text(told)
        text.set_fontfamily(families)
    return figure


def _texts(figure: Any) -> Iterator[Any]:
    """Texts of a figure that hold anything, but the labels of ticks."""
    from matplotlib.text import Text

    ticks = {id(label) for axes in figure.axes for label in (*axes.get_xticklabels(), *axes.get_yticklabels())}
    return (text for text in figure.findobj(Text) if text.get_text().strip() and id(text) not in ticks)
