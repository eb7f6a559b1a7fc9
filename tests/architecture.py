"""Rules of the source code: ``python -m tests.architecture`` names each breach and exits with code 1.

An import counts wherever it stands: at the top of a file, inside a function, under ``TYPE_CHECKING``. That imports
point one way between packages is held by import-linter (pyproject.toml). A function or method takes at most `MOST`
parameters: one that needs more wants a type. Declarations of the command line, and what `dataclass` writes, are free.
A class at the top of a file has a name that no other has. A module reads private names of its own at most, a test those
of its own package.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import networkx

ROOT = Path(__file__).parents[1]
#: parameters of a function
MOST = 10
#: a name of a module, or of what is in it
PATH = re.compile(r"\w+(\.\w+)+")


def modules(package: Path) -> dict[str, Path]:
    """File of each module below a package's folder, by the module's name."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(name: str, path: Path, known: dict[str, Path]) -> Iterator[tuple[str, int]]:
    """Modules of `known` that a file imports, each with the line."""
    base = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text("utf-8"), str(path))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom):
            head = base[: len(base) - node.level + 1] if node.level else []
            source = ".".join([*head, *([node.module] if node.module else [])])
            for alias in node.names:
                target = f"{source}.{alias.name}"
                target = target if target in known else source
                if target in known and target != name:
                    yield target, node.lineno


def import_graph(package: Path) -> networkx.DiGraph:
    """Who imports whom; an edge has its ``line``."""
    known = modules(package)
    graph = networkx.DiGraph()
    graph.add_nodes_from(known)
    for name, path in known.items():
        for target, line in imports(name, path, known):
            graph.add_edge(name, target, line=line)
    return graph


def circles(package: Path) -> list[list[str]]:
    """Modules that import each other in a circle, group by group, in words: who imports whom in which line."""
    graph, known = import_graph(package), modules(package)
    found = []
    for group in networkx.strongly_connected_components(graph):
        if len(group) > 1:
            edges = sorted(graph.subgraph(group).edges(data="line"))
            found.append(
                [f"{known[one].relative_to(package.parent)}:{line} imports {other}" for one, other, line in edges]
            )
    return sorted(found)


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """How many parameters a function takes: not `self` and `cls`, nor the keywords that it had once (``**removed``)."""
    given = function.args
    names = [one.arg for one in (*given.posonlyargs, *given.args)]
    more = [one.arg for one in (given.vararg, given.kwarg) if one is not None and one.arg != "removed"]
    return len(names) - (names[:1] in (["self"], ["cls"])) + len(given.kwonlyargs) + len(more)


def long_signatures(package: Path) -> list[str]:
    """Functions of more than `MOST` parameters outside the command line, in words."""
    found = []
    for path in modules(package).values():
        if path.is_relative_to(package / "cli"):
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"), str(path))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (count := parameters(node)) > MOST:
                place = path.relative_to(package.parent)
                found.append(f"{place}:{node.lineno} {node.name} has {count} parameters, {MOST} at most")
    return found


def shared_names(package: Path) -> list[str]:
    """Names that several classes at the top of a file have, in words."""
    places: dict[str, list[str]] = {}
    for path in modules(package).values():
        for node in ast.parse(path.read_text("utf-8"), str(path)).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(f"{path.relative_to(package.parent)}:{node.lineno}")
    return [f"class {name} has {len(at)} meanings: {', '.join(at)}" for name, at in places.items() if len(at) > 1]


def bound_names(tree: ast.AST, package: str) -> dict[str, str]:
    """Dotted path of what each name stands for that a file imports from a package, at its top or in a function."""
    bound = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith(f"{package}."):
            bound |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if f"{alias.name}.".startswith(f"{package}."):
                    bound |= {alias.asname: alias.name} if alias.asname else {package: package}
    return bound


def dotted_path(node: ast.expr, bound: dict[str, str]) -> str | None:
    """Path of an imported name, or of an attribute of it: ``simperf.registry.Registry.add``."""
    if isinstance(node, ast.Name):
        return bound.get(node.id)
    if isinstance(node, ast.Attribute) and (source := dotted_path(node.value, bound)):
        return f"{source}.{node.attr}"
    return None


def reads(tree: ast.AST, package: str) -> Iterator[tuple[int, str]]:
    """Paths of a package that a file imports, reads as an attribute, or names in a string, each with the line.

    A string counts where it is a whole path (``setattr("shop.stock._count", 1)``), or follows the object of a call
    whose attribute it names (``setattr(stock, "_count", 1)``).
    """
    bound = bound_names(tree, package)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Attribute) and (path := dotted_path(node, bound)):
            yield node.lineno, path
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and PATH.fullmatch(node.value):
            yield node.lineno, node.value
        elif isinstance(node, ast.Call):
            match node.args:
                case [owner, ast.Constant(value=str(name)), *_] if source := dotted_path(owner, bound):
                    yield node.lineno, f"{source}.{name}"


def private_reads(package: Path, tests: Path) -> list[str]:
    """Private names of another module that a module reads, and of another package that a test reads or replaces.

    The package of ``tests/study/test_plan.py`` is ``simperf.study``. Tests beside these folders have all of them.
    """
    known = modules(package)
    allowed = [(path, f"{name}.", package) for name, path in known.items()]
    for path in sorted(tests.rglob("*.py")):
        own = path.relative_to(tests).parts[0]
        allowed.append((path, "" if own.endswith(".py") else f"{package.name}.{own}.", tests))
    found = []
    for path, own, root in allowed:
        for line, target in reads(ast.parse(path.read_text("utf-8"), str(path)), package.name) if own else ():
            source, _, name = target.rpartition(".")
            module = next((one for one in prefixes(source) if one in known), None)
            private = name.startswith("_") and not name.startswith("__")
            private = private and (root == tests or source == module)  # a class reads what its base keeps for it
            if private and module and not f"{module}.".startswith(own):
                found.append(f"{path.relative_to(root.parent)}:{line} reads {name} of {source}")
    return found


def prefixes(path: str) -> Iterator[str]:
    """A dotted path and all that it begins with, the longest first."""
    while path:
        yield path
        path = path.rpartition(".")[0]


def main(arguments: list[str]) -> int:
    """Name the circles, the long signatures and the shared names of a package: the folder given, or simperf."""
    package = Path(arguments[0]) if arguments else ROOT / "simperf"
    found, long, shared = circles(package), long_signatures(package), shared_names(package)
    private = private_reads(package, ROOT / "tests")
    for group in found:
        print("circular imports:", *group, sep="\n  ")
    for line in (*long, *shared, *private):
        print(line)
    print(
        f"{len(found)} groups of circular imports, {len(long)} functions of more than {MOST} parameters, "
        f"{len(shared)} shared names of classes, {len(private)} reads of private names"
    )
    return 1 if found or long or shared or private else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
