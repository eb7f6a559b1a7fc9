"""`python -m tests.fuzz`: play cases of a seed and print what must not happen; exit code 1 if anything did."""

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from importlib import import_module
from pathlib import Path
from random import Random

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.pop("SIMPERF_TRUTH", None)  # `accuracy` would play all measured cases


#: what most cases import
_MODULES = (
    *(
        "cli.app",
        "cli.run",
        "cli.compare",
        "cli.sweep",
        "cli.plan",
        "report.tables",
        "report.comparisons",
        "report.plots",
    ),
    *("study.planning", "study.sweep", "study.limits", "simulate", "scenario.load"),
    *("calibrate.fitting", "calibrate.importers", "calibrate.fit.sets", "calibrate.measure.session"),
    *("scenario.checking", "study.check", "hardware.profile_schema", "workload.transformers.transformer_file"),
    *("layout.layout_file", "training.pipelined.run", "report.stages"),
)


def main(arguments=None):
    """Play the cases."""
    from tests.fuzz.cases import SHARES, make_case

    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=2000, help="how many; default 2000")
    parser.add_argument("--seed", default="1", help="of the cases; default 1")
    parser.add_argument("--kind", default="", choices=["", *SHARES], help="of files, such as layout; default all")
    parser.add_argument("--case", type=int, help="simulate this one alone, and print what it writes")
    parser.add_argument("--keep", type=Path, help="write the messages of refused cases to this file, to be read")
    parser.add_argument("--messages", type=int, default=0, help="print as many of these messages, drawn at random")
    given = parser.parse_args(arguments)
    from tests.fuzz.findings import finding

    _prepare()
    numbers = range(given.cases) if given.case is None else [given.case]
    began, counts, messages = time.monotonic(), Counter(), []
    if given.keep is not None:
        given.keep.write_text("", "utf-8")
    with tempfile.TemporaryDirectory(prefix="simperf-fuzz-") as home:
        os.environ["XDG_CACHE_HOME"] = home
        for number in numbers:
            case = make_case(given.seed, number, only=given.kind)
            outcome = play_case(case, Path(home))
            kind, shown = finding(outcome, case)
            counts[kind or f"exit {outcome.code}"] += 1
            if kind:
                line = " ".join(word if len(word) < 80 else word[:80] + "..." for word in case.words)
                made = f"{case.changed} {case.special}"[:200]
                told = f"{given.seed}:{number}: {kind}: {shown}\n    {line}    [{made}]"
                print(told.encode("ascii", "backslashreplace").decode(), flush=True)
            if outcome.code:
                head = f"{given.seed}:{number}: {' '.join(case.words)[:200]} [{case.changed[:200]}]"
                messages.append(f"{head}\n{outcome.err[:1500]}\n")
                if given.keep is not None:
                    with given.keep.open("a", encoding="utf-8", errors="backslashreplace") as kept:
                        kept.write(messages[-1])
            if given.case is not None:
                print(ascii(case), f"exit code {outcome.code}, {outcome.seconds:.1f} s")
                print(outcome.out[:3000], outcome.err, sep="\n")
    for message in Random(given.seed).sample(messages, min(given.messages, len(messages))):
        print(ascii(message).replace("\\n", "\n"))
    wrong = sum(count for kind, count in counts.items() if not kind.startswith("exit"))
    told = ", ".join(f"{count} {kind}" for kind, count in counts.most_common())
    print(f"{len(numbers)} cases of seed {given.seed} in {time.monotonic() - began:.0f} s: {told}", file=sys.stderr)
    return 1 if wrong else 0


def play_case(case, home):
    """Run a case in a folder of its own, which is removed."""
    from tests.fuzz.limits import play

    folder = Path(tempfile.mkdtemp(dir=home))
    try:
        case.write(folder)
        return play(lambda: _call(case.words, case.environment), folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _call(words, environment):
    """A command of simperf, or a function of its modules."""
    from simperf.cli import main as command

    os.environ |= environment
    if not words[0].startswith("@"):
        return command(list(words))
    from simperf.errors import SimperfError

    module, kind, function = words[0][1:].rsplit(".", 2)
    try:
        getattr(getattr(import_module(module), kind), function)(*words[1:])
    except SimperfError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def _prepare():
    """Import what cases use, so that each of them need not."""
    for name in _MODULES:
        import_module(f"simperf.{name}")


if __name__ == "__main__":
    sys.exit(main())
