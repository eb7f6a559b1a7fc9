"""A file to start from, with the command lines that read it."""

import gzip
import json
import tomllib
from dataclasses import dataclass

import tomli_w

__all__ = ["Source", "toml_bytes"]


def toml_bytes(tree):
    """The bytes of a TOML file, also of letters that UTF-8 has no place for."""
    return tomli_w.dumps(tree).encode("utf-8", "surrogatepass")


@dataclass(frozen=True)
class Source:
    """A kind of file.

    Parameters
    ----------
    kind : str
    name : str
        Of the file in the case's folder.
    raw : bytes
        What it holds before it is changed.
    lines : tuple of tuple of str
        Command lines, one of which is taken; ``{}`` is the file, ``@load`` calls Python in place of a command.
    beside : dict of str to str
        Other files.
    """

    kind: str
    name: str
    raw: bytes
    lines: tuple
    beside: dict

    @property
    def is_toml(self):
        return self.name.endswith(".toml")

    @property
    def is_json(self):
        return self.name.endswith((".json", ".json.gz"))

    @property
    def is_tree(self):
        """Whether it is made of tables and lists."""
        return self.is_toml or self.is_json or type(self) is not Source

    def tree(self):
        """The content as tables and lists."""
        raw = gzip.decompress(self.raw) if self.name.endswith(".gz") else self.raw
        return tomllib.loads(raw.decode()) if self.is_toml else json.loads(raw)

    def written(self, tree):
        """The bytes of changed content."""
        if self.is_toml:
            return toml_bytes(tree)
        raw = json.dumps(tree, default=str).encode()
        return gzip.compress(raw, 1, mtime=0) if self.name.endswith(".gz") else raw
