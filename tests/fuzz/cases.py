"""Cases: a command line and the files that it reads, made of a seed and a number."""

import gzip
import os
import random
from dataclasses import dataclass, field

from tests.fuzz import mutations, options
from tests.fuzz.jobs import job_files
from tests.fuzz.kept import CACHE, kept
from tests.fuzz.layouts import layout_case
from tests.fuzz.searches import JOB, SEARCH, search_case, what_if_case
from tests.fuzz.source import toml_bytes
from tests.fuzz.sources import results, sources

__all__ = ["Case", "make_case"]

#: how often each kind of file is taken
SHARES = {
    "scenario": 14,
    "run": 16,
    "part": 10,
    "profile": 10,
    "stack": 3,
    "plan": 4,
    "model": 8,
    "recording": 5,
    "log": 8,
    "replay": 4,
    "result": 7,
    "finished": 3,
    "journal": 4,
    "cache": 3,
    "options": 24,
    "layout": 16,
    "job": 12,
    "search": 8,
    "what-if": 6,
}
#: command lines for a scenario of a divided model
LAYOUT_LINES = (("run", "s.toml"), ("run", "s.toml", "--format", "json"), ("check", "s.toml"))


@dataclass(frozen=True)
class Case:
    """A command line, its files and what was changed.

    Parameters
    ----------
    words : tuple of str
        Of the command line, without ``simperf``; a first word ``@a.b.C.f`` calls that function with the others.
    files : dict of str to bytes
        By name in the folder in which it is run; an empty name's text says which special file there is.
    changed : str
        What was changed, in words.
    special : str
        A name for which a pipe, a device, a folder or nothing stands.
    """

    words: tuple
    files: dict = field(repr=False)
    changed: str = ""
    special: str = ""

    @property
    def names(self):
        """Names of files, which messages should have."""
        return tuple(self.files)

    @property
    def environment(self):
        """Variables: the folder itself is that of the cache where a file is."""
        return {"SIMPERF_CACHE": "."} if CACHE in self.files else {}

    @property
    def arguments(self):
        """Words behind the name of the command, which messages may name."""
        return self.words[options.depth(self.words) :]

    def write(self, folder):
        """Put the files into a folder."""
        for name, raw in self.files.items():
            if name != self.special.partition(" ")[0]:
                (folder / name).write_bytes(raw)
        name, _, kind = self.special.partition(" ")
        if kind == "pipe":
            os.mkfifo(folder / name)
        elif kind == "folder":
            (folder / name).mkdir()
        elif kind == "device":
            (folder / name).symlink_to("/dev/zero")


def make_case(seed, number, *, only=""):
    """The case `number` of a seed, of one kind if it is named: the same each time."""
    rng = random.Random(f"{seed}:{number}")
    kind = only or rng.choices(list(SHARES), list(SHARES.values()))[0]
    if kind == "options":
        return _of_options(rng)
    if kind == "layout":
        raw, changed = layout_case(rng)
        return Case(rng.choice(LAYOUT_LINES), {"s.toml": raw}, f"{kind}: {changed}")
    if kind == "what-if" or (kind == "search" and rng.random() < 0.6):
        words, raw, changed = (what_if_case if kind == "what-if" else search_case)(rng)
        return Case(words, {"s.toml" if kind == "what-if" else "m.toml": raw}, f"{kind}: {changed}")
    source = rng.choice((kept() if kind in ("journal", "cache") else sources())[kind])
    words = tuple(source.name if word == "{}" else word for word in rng.choice(source.lines))
    files = {name: text.encode() for name, text in source.beside.items()}
    changed, special = "", ""
    how = rng.random()
    if how < 0.04:
        special = f"{source.name} {rng.choice(['pipe', 'folder', 'device', 'nothing'])}"
        raw = b""
    elif how < 0.07:
        raw, changed = _packed(rng, source), "packed"
    elif how < 0.22:
        raw, changed = mutations.scrambled(rng, source.raw), "scrambled"
    else:
        raw, changed = _changed(rng, source)
    return Case(words, {**files, source.name: raw}, f"{kind}: {changed}", special)


def _packed(rng, source):
    """The file packed: too large, cut off or damaged."""
    whole = source.raw if source.name.endswith(".gz") else gzip.compress(source.raw, 1, mtime=0)
    middle = rng.randrange(len(whole))
    bomb = gzip.compress(b" " * 2**24, 6, mtime=0) * rng.choice([2, 20])
    damaged = whole[:middle] + b"x" + whole[middle + 1 :]
    return rng.choice([whole[:middle], damaged, whole + b"tail", bomb, whole + bomb])


def _changed(rng, source):
    """The file with one to three places changed."""
    if not source.is_tree:
        return mutations.scrambled(rng, source.raw), "scrambled"
    tree = source.tree()
    keys = []
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        if isinstance(tree, dict | list) and tree:
            keys.append(".".join(map(str, mutations.change(rng, tree))))
    try:
        return source.written(tree), ", ".join(keys)
    except (TypeError, ValueError, RecursionError):
        return mutations.scrambled(rng, source.raw), "scrambled"


def _of_options(rng):
    files = {"r.json": results()[0], "s.toml": sources()["run"][0].raw, "plan.toml": sources()["plan"][0].raw}
    files |= {one.name: one.raw for one in (*sources()["log"], *sources()["recording"], *sources()["replay"])}
    files["p.toml"] = sources()["profile"][0].raw
    files |= {
        "search.toml": toml_bytes(SEARCH),
        "m.toml": toml_bytes(SEARCH["model"]),
        "asked.toml": toml_bytes(JOB),
    } | job_files()
    return Case(tuple(options.line(rng)), files, "options")
