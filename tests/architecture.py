"""Circular imports of the package: ``python -m tests.architecture`` names each circle, exit code 1 if there is one.

An import counts wherever it stands: at the top of a file, inside a function, under ``TYPE_CHECKING``. That imports
point one way between packages is held by import-linter (pyproject.toml).
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import networkx

ROOT = Path(__file__).parents[1]


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


def main(arguments: list[str]) -> int:
    """Name the circles of a package: the folder given, or simperf."""
    found = circles(Path(arguments[0]) if arguments else ROOT / "simperf")
    for group in found:
        print("circular imports:", *group, sep="\n  ")
    print(f"{len(found)} groups of circular imports")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
