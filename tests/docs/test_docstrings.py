"""Docstrings lead with the noun that they define, or with a verb, and not with a clause."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CLAUSES = {"What", "How", "Where", "Which", "Who", "Why"}
#: a predicate may begin with "Whether"; a module or a class is none
OF_KINDS = CLAUSES | {"Whether", "That"}
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


def clauses(text):
    """Lines of a module's docstrings that lead with a clause, with the names of what they describe."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Module | ast.ClassDef | FUNCTIONS):
            continue
        name = getattr(node, "name", "module")
        function = isinstance(node, FUNCTIONS)
        if function and name.startswith("_"):
            continue
        words = (ast.get_docstring(node) or "").split()
        if words and words[0].rstrip(".,:;") in (CLAUSES if function else OF_KINDS):
            yield node.body[0].lineno, f"{name}: {' '.join(words[:8])} ..."


def test_docstrings_of_the_package_lead_with_a_noun_or_a_verb():
    paths = sorted((ROOT / "simperf").rglob("*.py"))
    assert paths
    hits = [
        f"{path.relative_to(ROOT)}:{line}: {one}" for path in paths for line, one in clauses(path.read_text("utf-8"))
    ]
    assert hits == [], "lead with the noun that is defined, or with a verb:\n" + "\n".join(hits)


PLANTED = '''"""{first} the module defines."""

class Kind:
    """{first} a class defines."""

    @property
    def name(self):
        """{first} a property gives."""

    def _hidden(self):
        """{first} nobody reads."""

async def function():
    """{first} a function gives."""
'''


@pytest.mark.parametrize("first", sorted(CLAUSES))
def test_a_clause_is_found(first):
    assert [line for line, _ in clauses(PLANTED.format(first=first))] == [1, 4, 14, 8]


@pytest.mark.parametrize("first", ["Whether", "That"])
def test_only_a_predicate_begins_with_whether(first):
    assert [line for line, _ in clauses(PLANTED.format(first=first))] == [1, 4]


def test_a_noun_and_a_verb_are_no_clauses():
    assert not list(clauses(PLANTED.format(first="Names of all that")))
    assert not list(clauses(PLANTED.format(first="Show what")))
