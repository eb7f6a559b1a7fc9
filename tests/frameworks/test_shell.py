"""Arguments in shell scripts are those that the shell would pass."""

import shutil
import subprocess
import time

import pytest

from simperf.errors import InputError
from simperf.frameworks.shell import job_arguments

LISTS = """
A=(--num-layers 4
  --lr 1e-4 # a remark
)
A+=(--bf16 "--seq-length 128")
P="--hidden-size 64"
run "${A[@]}" $P --x "a b"
"""
DEFAULTS = """
N=${LAYERS:-8}
M=${N:-9}
torchrun --nproc_per_node $((2*(3+1))) x.py --num-layers $N --hidden-size "${M}0" --y '$N'
"""
CONDITIONS = """
D=fp8
A="--num-layers 2"
if [[ "$D" == "fp8" ]]; then
  A="$A --fp8-format hybrid"
else
  A="$A --z"
fi
if [ -n "$UNSET" ]; then A="$A --no"; elif [ 3 -gt 2 ] && [ a != b ]; then A="$A --yes"; fi
run $A
"""
SCRIPTS = {
    "lists": LISTS,
    "defaults": DEFAULTS,
    "conditions": CONDITIONS,
    "continued": "run --num-layers 3 \\\n   --hidden-size 32 \\\n   --a-b=7 # end\necho done",
    "several words": "run --num-layers 3 --data-path 0.5 a 0.5 b --split 9,1",
}


def options(text, **variables):
    found, notes = job_arguments(text, "s.sh", variables)
    return {one.name: list(one.words) for one in found}, notes


@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash to compare with")
def test_words_are_those_of_bash(name, tmp_path):
    script = tmp_path / "s.sh"
    shown = 'run() { printf "%s\\n" "$@" >words; }\ntorchrun() { run "$@"; }\n'
    script.write_text(shown + SCRIPTS[name])
    subprocess.run(["bash", "s.sh"], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    words = (tmp_path / "words").read_text().split()
    expected: dict[str, list[str]] = {}
    for word in words:
        if word.startswith("--"):
            key, equals, value = word.partition("=")
            expected[key] = [value] if equals else []
        elif expected and not word.endswith(".py"):
            expected[list(expected)[-1]] += [word]
    found, _ = options(SCRIPTS[name])
    assert {name: " ".join(words).split() for name, words in found.items()} == expected


def test_variables_from_outside_go_before_the_script():
    assert options("N=4\nrun --num-layers $N", N="7")[0]["--num-layers"] == ["7"]
    assert options("run --num-layers $1", **{"1": "5"})[0]["--num-layers"] == ["5"]


def test_a_value_that_is_not_known_says_which_variable_it_needs():
    (one,) = job_arguments("N=$SIZE\nrun --num-layers $N", "s.sh", {})[0]
    assert one.words == ()
    assert one.unset == ("SIZE",)


def test_arguments_alone_and_in_a_text():
    assert options("--num-layers 4\n--bf16\n")[0] == {"--num-layers": ["4"], "--bf16": []}
    assert options('export PARAMS=" --num-layers 4 \\\n --bf16"\n. ./more.sh')[0] == {
        "--num-layers": ["4"],
        "--bf16": [],
    }
    assert options('srun sh -c "python x.py --num-layers 4 --bf16"')[0] == {"--num-layers": ["4"], "--bf16": []}


def test_loops_functions_and_tests_of_commands_are_noted():
    text = (
        "for i in 1 2; do\n run --num-layers $i\ndone\nf() {\n  A=3\n}\nif grep x y; then B=1; fi\nrun --num-layers 4"
    )
    found, notes = options(text)
    assert found == {"--num-layers": ["4"]}
    assert [one.partition(" ")[0] for one in notes] == ["for", "f", "if"]


def test_a_document_in_the_script_is_left_out():
    assert options("cat <<EOF\nrun --num-layers 9 'open\nEOF\nrun --num-layers 4")[0]["--num-layers"] == ["4"]


@pytest.mark.parametrize(
    "text",
    [
        "echo hello",
        "",
        "A='open\nrun --num-layers 4",
        "A=(1 2\nrun --num-layers 4",
        "A=x\n" + "A=$A$A\n" * 60 + "run --num-layers $A",
        "run --num-layers " + "${A:-" * 5000 + "}" * 5000,
        "run --num-layers $((" + "(" * 5000 + "1" + ")" * 5000 + "))",
        "if " * 20000 + "\nrun --num-layers 4",
        "if true; then\n" * 20000,
        "A=(" * 50000,
    ],
)
def test_hostile_scripts_end_soon_with_a_message(text):
    began = time.monotonic()
    with pytest.raises(InputError):
        options(text)
    assert time.monotonic() - began < 20
