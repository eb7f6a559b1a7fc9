"""Files that a command has written: whole, to be read, and without numbers that cannot be."""

import gzip
import html
import json
import re
import tomllib
import zlib
from xml.etree import ElementTree

from simperf.errors import SimperfError
from simperf.result_file import read_result
from tests.fuzz import numbers

__all__ = ["odd_file"]

#: how pictures end, by how they begin
_ENDS = {b"\x89PNG": b"IEND\xaeB`\x82", b"%PDF": b"%%EOF"}
_DATA = re.compile(r'<script type="application/json"[^>]*>(.*?)</script>', re.S)
#: cells with a difference, below 0, and its share
_DIFFERENCE = re.compile(r"<td[^>]*>-[^<]*</td>\s*<td[^>]*>-[^<]*%</td>")
#: the picture of what changes of a what-if contribute, which may be below 0
_CHANGES = re.compile(r'<svg\b(?:(?!</svg>).)*?\bid="what-if-.*?</svg>', re.S)
_CODE = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.S)


def odd_file(name, raw, echoes=()):
    """What is wrong with a file, in words; an empty text if nothing is.

    Parameters
    ----------
    name : str
    raw : bytes
    echoes : iterable of str
        Titles and names that were given, which may be spelt as numbers are.
    """
    if name.endswith(".part"):
        return "half-written"
    if raw[:2] == b"\x1f\x8b":
        try:
            raw = gzip.decompress(raw)
        except (OSError, EOFError, zlib.error) as error:
            return f"not to be unpacked: {error}"
    for begin, end in _ENDS.items():
        if raw.startswith(begin):
            return "" if raw.rstrip().endswith(end) else "a picture without its end"
    if raw.startswith(b"SQLite"):
        return ""
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        return f"not UTF-8: {error}"
    return _odd_words(name, text, echoes)


def _odd_words(name, text, echoes):
    begin = text.lstrip()[:20].lower()
    if name.endswith((".jsonl", ".journal")):
        return next((told for line in text.splitlines() if (told := numbers.odd_json(line))), "")
    if begin.startswith(("{", "[{", "[\n", "[]")) and not name.endswith(".toml"):
        return numbers.odd_json(text) or _unread(json.loads(text))
    if begin.startswith("<!doctype html"):
        return _odd_page(text, echoes)
    if begin.startswith(("<?xml", "<svg")):
        return _odd_drawing(text)
    if name.endswith(".toml"):
        try:
            data = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            return f"not TOML: {error}"
        return numbers.odd_tree(data) if data.get("kind") == "profile" else ""
    return numbers.odd_csv(text) if name.endswith(".csv") else numbers.odd_text(text, echoes)


def _unread(data):
    """Why a saved result cannot be read back."""
    if isinstance(data, dict) and {"format", "metrics", "spans"} <= set(data):
        try:
            read_result(data)
        except SimperfError as error:
            return str(error)[:300]
    return ""


def _odd_page(text, echoes):
    if not text.rstrip().endswith("</html>"):
        return "a page without its end"
    told = next((told for data in _DATA.findall(text) if (told := numbers.odd_json(data))), "")
    known = _DIFFERENCE.sub(" ", _CHANGES.sub(" ", text))
    return told or numbers.odd_text(html.unescape(_CODE.sub(" ", known)), echoes)


def _odd_drawing(text):
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        return f"a drawing that cannot be read: {error}"
    for each in root.iter():
        for key, value in each.attrib.items():
            if re.search(r"(?<![\w#])-?(?:nan|inf)(?!\w)", value) and key not in ("id", "class", "title"):
                return f"{key}={value[:100]}"
    return ""
