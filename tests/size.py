"""Size of the packages at two commits: ``python -m tests.size BEFORE [AFTER]``, as a table of Markdown.

Counts lines, files, classes, and names that modules export (``__all__``) of Python; the working tree by default.
"""

import argparse
import ast
import io
import subprocess
import sys
import tarfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
COUNTED = ("lines", "files", "classes", "names")


def sources(commit, folders=("simperf", "tests")):
    """Path and text of each file of Python of a commit, or of the working tree without one."""
    if commit:
        packed = subprocess.run(["git", "archive", commit, *folders], cwd=ROOT, check=True, capture_output=True).stdout
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            for one in archive:
                if one.name.endswith(".py") and (stream := archive.extractfile(one)) is not None:
                    yield one.name, stream.read().decode()
        return
    for path in sorted(file for folder in folders for file in (ROOT / folder).rglob("*.py")):
        yield path.relative_to(ROOT).as_posix(), path.read_text("utf-8")


def package_of(path):
    """Package of a file, such as ``engine``; the modules beside the packages are one."""
    first, *rest = path.split("/")
    return "tests" if first == "tests" else rest[0] if len(rest) > 1 else "beside the packages"


def sizes(files):
    """Counts of each package."""
    found = {}
    for path, text in files:
        own, tree = found.setdefault(package_of(path), Counter()), ast.parse(text)
        own["lines"] += len(text.splitlines())
        own["files"] += 1
        own["classes"] += sum(isinstance(node, ast.ClassDef) for node in ast.walk(tree))
        own["names"] += sum(exported(node) for node in tree.body)
    return found


def exported(node):
    """Number of names that a statement exports, if it is ``__all__ = [...]``."""
    named = isinstance(node, ast.Assign) and [getattr(one, "id", "") for one in node.targets] == ["__all__"]
    return len(node.value.elts) if named and isinstance(node.value, ast.List | ast.Tuple) else 0


def table(before, after):
    """Both as a table, with the sum of all packages but the tests."""
    rows = [(name, before.get(name, Counter()), after.get(name, Counter())) for name in sorted({*before, *after})]
    whole = [sum((one[side] for one in rows if one[0] != "tests"), Counter()) for side in (1, 2)]
    last = ("simperf", "tests")
    rows = sorted([*rows, ("simperf", *whole)], key=lambda one: last.index(one[0]) if one[0] in last else -1)
    lines = [f"| package | {' | '.join(COUNTED)} |", "|---|" + "--:|" * len(COUNTED)]
    for name, old, new in rows:
        cells = (f"{old[what]:,} to {new[what]:,}" if old[what] != new[what] else f"{new[what]:,}" for what in COUNTED)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m tests.size", description=__doc__)
    parser.add_argument("before")
    parser.add_argument("after", nargs="?", default="", help="a commit; the working tree by default")
    given = parser.parse_args(arguments)
    print(table(sizes(sources(given.before)), sizes(sources(given.after))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
