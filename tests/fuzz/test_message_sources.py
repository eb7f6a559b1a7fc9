"""Every problem that the source code can tell says what would be right, by its words or by what it expects."""

import ast
from pathlib import Path

import simperf
from tests.fuzz.messages import RIGHT

#: parts of messages that are made elsewhere: nearest names, and what another reader said
MADE = ("nearest(", "hint", "error", "reason", "row", " problems more")
#: what no input leads to
DEFECTS = ("a drawn communication", "draws of a step")


def words(node):
    """The text of a message, with what is put into it as code."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(words(part) for part in node.values)
    if isinstance(node, ast.BinOp):
        return words(node.left) + words(node.right)
    return "{" + ast.unparse(node.value if isinstance(node, ast.FormattedValue) else node) + "}"


def problems(tree):
    """Calls that make a `Problem` without saying what is expected: line and message."""
    for scope in ast.walk(tree):
        if not isinstance(scope, ast.FunctionDef):
            continue
        inside = list(ast.walk(scope))
        given = [one for one in inside if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name)]
        for call in inside:
            name = ast.unparse(call.func).rpartition(".")[2] if isinstance(call, ast.Call) else ""
            at = {"Problem": 0, "problem": 1}.get(name)
            if at is None or len(call.args) <= at or any(one.arg == "expected" for one in call.keywords):
                continue
            message = call.args[at]
            if isinstance(message, ast.Name):
                before = [one for one in given if one.targets[0].id == message.id and one.lineno <= call.lineno]
                message = max(before, key=lambda one: one.lineno).value if before else message
            yield call.lineno, words(message)


def test_problems_say_what_would_be_right():
    folder = Path(simperf.__file__).parent
    found = {
        f"{path.relative_to(folder)}:{line}: {told}"
        for path in folder.rglob("*.py")
        for line, told in problems(ast.parse(path.read_text()))
        if told and not RIGHT.search(told) and not told.startswith("{") and not any(part in told for part in MADE)
    }
    assert not found


def raised(tree, kinds=("ProgramError", "MachineError")):
    """Errors of these kinds that are raised: line and message."""
    for one in ast.walk(tree):
        if isinstance(one, ast.Raise) and isinstance(one.exc, ast.Call) and ast.unparse(one.exc.func) in kinds:
            yield one.lineno, words(one.exc.args[0])


def test_programs_say_what_would_be_right():
    folder = Path(simperf.__file__).parent
    found = {
        f"{path.relative_to(folder)}:{line}: {told}"
        for part in ("programs", "training")
        for path in (folder / part).rglob("*.py")
        for line, told in raised(ast.parse(path.read_text()))
        if not RIGHT.search(told) and not any(part in told for part in (*MADE, *DEFECTS))
    }
    assert not found


def test_a_problem_without_a_way_out_is_found():
    tree = ast.parse(
        'def f():\n    told = "it is wrong"\n    Problem(told, key="a")\n    toml.problem(at, "as well")\n'
    )
    assert list(problems(tree)) == [(3, "it is wrong"), (4, "as well")]
    assert list(raised(ast.parse('raise ProgramError("it is wrong")'))) == [(1, "it is wrong")]
    assert not list(problems(ast.parse('def f():\n    Problem("it is wrong", expected="right")\n')))
