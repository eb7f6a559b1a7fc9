"""Command lines with an odd value for one or two options of any command."""

import tomllib
from functools import cache

from simperf.cli.app import command
from simperf.scenario import shipped_scenarios
from tests.fuzz import mutations
from tests.fuzz.searches import asked

#: by command, lines that work and take little time; commands that serve, measure, trace or build are left out, but for
#: their names
LINES = {
    ("run",): (
        *("d2l/async", "d2l/sync-160mb", "d2l/links", "training/jitter-stragglers", "training/ps-servers"),
        *("asked.toml --what-if network=2x,host1=0.8x", "asked.toml --what-if precision=fp8"),
    ),
    ("compare",): ("d2l/sync-160mb",),
    ("sweep",): ("d2l/async --vary program.n=10,20", "d2l/links --vary run.seed=1,2"),
    ("limits",): ("d2l/async --set program.n=20",),
    ("plan",): ("plan.toml", "search.toml", "--layouts m.toml --on dgx-a100 --vary tp=1,2"),
    ("import",): (
        *("j.sh", "titan.toml", "j.yaml", "ds.json --model llama3.2-1b --gpus 8", "j.sh --gpus 16 --on dgx-a100"),
        *("j.sh --variable SLURM_NNODES=2", "ds.json --framework deepspeed --model lenet"),
    ),
    ("explain",): ("step.json job.toml", "step.json job.toml --step 3"),
    ("replay",): ("step.json", "step.json --on h100-sxm5-80gb", "step.json --on dgx-h100"),
    ("check",): ("d2l/async", "s.toml"),
    ("show",): ("r.json",),
    ("programs",): ("", "train"),
    ("topo",): ("dgx-1v", "p3-8xlarge"),
    ("collective",): (
        "all-reduce --server dgx-a100 -b 1M -e 16M",
        "all-gather --cluster dgx-a100 --nodes 2 -b 1M -e 4M",
        "broadcast --topology ring --ranks 4 -b 1M -e 1M",
        "all-to-all --server dgx-1v -b 1M -e 1M",
    ),
    ("schema",): ("scenario", "part"),
    ("scenarios", "list"): ("",),
    ("scenarios", "copy"): ("d2l/async out.toml",),
    ("catalog", "list"): ("", "gpu"),
    ("catalog", "show"): ("t4", "dgx-1v"),
    ("zoo", "list"): ("",),
    ("zoo", "show"): ("lenet",),
    ("calibrate", "import"): ("n.txt",),
    ("calibrate", "fit"): ("sends.csv",),
    ("calibrate", "measure"): ("--list",),
    ("calibrate", "cluster"): ("--replay b.json",),
    ("calibrate", "validate"): ("p.toml d.json",),
    ("calibrate", "leave-out"): (".",),
    ("calibrate", "kernels"): (". h100-sxm5-80gb",),
    ("accuracy",): ("s.toml",),
    ("trace",): ("nowhere.py:Net --input 3,8,8 --output out.json",),
    ("lesson", "list"): ("",),
    ("lesson", "open"): ("nothing",),
    ("lesson", "export"): ("nothing out",),
}
#: commands with many options, which are taken more often
OFTEN = ("run", "compare", "sweep", "limits", "collective", "plan", "import")
#: options that serve, or that use the machine for long
LEFT_OUT = {"--live", "--pace", "--shipped"}
FILES = (
    *("out.json", "out.toml", "out.html", "out.svg", "out", ".", "no/such.json", "/dev/full", "s.toml", "r.json.gz"),
    "x" * 300,
)
WORDS = (
    *("\udcff\udc80", "--", "-", "--set", "-1", "+1", " 1 ", "1..3:2"),
    *("all", "0", "1,2,,3", "1..5", "5..1:3", "1..5:0", "a=b", "dgx-1v", "local:2", "serial", "dask:nowhere", "lhs"),
    "json",
)
KEYS = (
    *("program", "x.y", "program.n[0]", "machine.node[9].name", "", "a..b", "run.seed", "program.zzz", "program[-1]"),
    *("program[99999999999]", 'program."a.b"', "program.\u00e9", "\x1b[31m.n", "\udcff", "speed.program.t1", "speed."),
    *(
        "a." * 5000 + "a",
        "program." + "n" * 50_000,
        f"program[{'9' * 5000}]",
        "program[0]" * 500,
        "machine.node" + "[0]" * 5000,
    ),
)
#: between the values of a range
BETWEEN = (",", ",", "..", ":", ",,", "...", "..-", " , ", ";")


def depth(words):
    """How many words name the command."""
    return next((count for count in (2, 1) if tuple(words[:count]) in LINES), 1)


@cache
def _options(group):
    """Options of a command that are tried."""
    here = command()
    for name in group:
        here = here.commands[name]
    names = LEFT_OUT | {"--help"}
    return [one for one in here.params if one.param_type_name == "option" and one.opts[-1] not in names]


def line(rng):
    """A command line: that of a command with odd values."""
    groups = sorted(LINES)
    group = rng.choices(groups, [4 if one[0] in OFTEN else 1 for one in groups])[0]
    words = [*group, *rng.choice(LINES[group]).split()]
    options = _options(group)
    arguments = [at for at in range(len(group), len(words)) if not words[at].startswith("-")]
    if arguments and rng.random() < 0.15:
        at = rng.choice(arguments)
        words[at] = _word(rng, words[at])
    for option in rng.sample(options, min(len(options), rng.choice([1, 1, 2, 3]))):
        words += _given(rng, option, words)
    return words


def _given(rng, option, words):
    """An option with a value."""
    name = rng.choice([one for one in (*option.opts, *option.secondary_opts) if one])
    if option.is_flag:
        return [name]
    metavar, choices = str(option.metavar or ""), getattr(getattr(option, "type", None), "choices", None)
    if name == "--set":
        return [name, _assignment(rng, words)]
    if name == "--what-if" and rng.random() < 0.8:
        return [name, asked(rng)]
    if name in ("--vary", "--crossover"):
        key = _assignment(rng, words).partition("=")[0]
        return [name, f"{key}={_range(rng)}"]
    if choices and rng.random() < 0.9:
        return [name, rng.choice(list(choices))]
    if "FILE" in metavar or "FOLDER" in metavar or name in ("-o", "--output", "--to"):
        return [name, rng.choice(FILES)]
    return [name, _word(rng, rng.choice(["1", "2", "16", "1 us", "1 GB/s"]))]


def _range(rng):
    """Values of a key: a list, or a range with its points."""
    numbers = [
        _word(rng, rng.choice(["1", "2", "10", "1 us", "1 GB/s", "1.5"])) for _ in range(rng.choice([1, 2, 2, 3]))
    ]
    how = rng.random()
    if how < 0.3:
        return f"{rng.choice(['1', '0', '-1', numbers[0]])}..{rng.choice(['3', '1e18', '', numbers[-1]])}:{numbers[0]}"
    if how < 0.5:
        return f"{numbers[0]}..{numbers[-1]}{rng.choice(['', ':3', ':0', ':2 us', ' us'])}"
    return rng.choice(BETWEEN).join(numbers)


def _word(rng, old):
    """A text that may stand in a command line: no null byte."""
    how = rng.random()
    if how < 0.2:
        return rng.choice(WORDS)
    if how < 0.3:
        return mutations.endless(rng)
    found = mutations.value(rng, old)
    text = found if isinstance(found, str) else repr(found)
    return text.replace("\0", "") or "''"


def _assignment(rng, words):
    """A change of a key of the scenario that a line names, or of one that is not there."""
    name = next((word for word in words if word in shipped_scenarios()), "d2l/async")
    tree = tomllib.loads(shipped_scenarios()[name].read_text("utf-8"))
    path = rng.choice([one for one in mutations.places(tree) if one[0] not in ("scenario", "expect")])
    key = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")
    if rng.random() < 0.2:
        key = rng.choice(KEYS)
    old = tree
    for step in path:
        old = old[step]
    return f"{key}={_word(rng, old)}"
