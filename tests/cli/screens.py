"""Screens of every command at 80 and 120 columns: ``python -m tests.cli.screens FOLDER``.

Each is kept as text and as a picture (SVG, by rich) to be looked at. `SCREENS` are also what the tests take, which ask
that no line is wider than the terminal and no word is broken.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from simperf.cli import main as simperf

WIDTHS = (80, 120)
#: a screen's name -> the command; files are those that `prepare` makes
SCREENS: Mapping[str, str] = {
    "welcome": "",
    "run": "run d2l/async",
    "run-links": "run d2l/sync-160mb",
    "run-large": "run large/llama3-8b-fsdp",
    "run-large-verbose": "run large/llama3-8b-fsdp --verbose",
    "run-samples": "run d2l/async --set program.n=10 --set program.jitter=0.2 --samples 5",
    "compare": "compare d2l/sync-160mb",
    "compare-long-names": "compare training/ps-placement",
    "compare-vary": 'compare d2l/sync-160mb --vary "program.nbytes=10 MB,160 MB"',
    "sweep": 'sweep d2l/sync-160mb --vary "program.nbytes=10..160 MB:4" --vary program.algorithm=naive,sharded',
    "sweep-training": "sweep first.toml --vary program.batch_per_gpu=32,64 --vary program.precision=fp32,fp16",
    "limits": "limits d2l/async --set program.n=10",
    "limits-training": "limits first.toml",
    "plan": "plan plan.toml",
    "plan-explain": "plan plan.toml --explain 2",
    "plan-layouts": "plan --layouts llama3-8b --on dgx-h100 --gpus 8 --batch 8 --vary tp=1,8 --vary pp=1",
    "check": "check first.toml plan.toml server.toml",
    "show": "show result.json",
    "programs": "programs",
    "programs-one": "programs all-reduce",
    "topo": "topo dgx-h100",
    "collective": "collective all-reduce --server dgx-h100 -b 8 -e 1G -f 512",
    "collective-idealised": "collective all-reduce --server p4d-24xlarge --nodes 2 --algo ring,tree -b 1M -e 64M -f 8",
    "collective-best": "collective all-reduce --server dgx-a100 --best -b 8 -e 1G -f 512",
    "schema": "schema plan",
    "scenarios-list": "scenarios list",
    "catalog-list": "catalog list",
    "catalog-gpu": "catalog show h100-sxm5-80gb",
    "catalog-server": "catalog show dgx-h100",
    "catalog-cluster": "catalog show gb200-nvl72",
    "zoo-list": "zoo list",
    "zoo-show": "zoo show resnet50",
    "zoo-kernels": "zoo show lenet --kernels",
    "lesson-list": "lesson list",
    "calibrate-import": "calibrate import nccl.log --collective all-reduce",
    "accuracy": "accuracy measured/copy-overlap-v100",
    "replay": "replay {shipped}/large/recorded-step.json.gz",
    "import": 'import --arguments "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 '
    '--max-position-embeddings 4096 --micro-batch-size 1 --global-batch-size 8 --bf16" --on dgx-h100 --gpus 8',
    "error-option": "run d2l/async --fromat json",
    "error-name": "run d2l/asnyc",
    "error-file": "check broken.toml",
    **{
        f"help{'-' * bool(name)}{name.replace(' ', '-')}": f"{name} --help".strip()
        for name in ("", "run", "plan", "collective", "calibrate", "calibrate cluster", "zoo")
    },
}
#: outputs that are not for people, and so are not folded
DATA = ("schema", "import")
_LOG = """# nThread 1 nGpus 8 minBytes 1048576 maxBytes 4194304 step: 2(factor) warmup iters: 5 iters: 20
# Rank  0 Group  0 Pid 1 on node device  0 [0x07] NVIDIA A100
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
     1048576        262144     float     sum      -1    50.00   20.97   36.70      0    50.00   20.97   36.70      0
     2097152        524288     float     sum      -1    70.00   29.96   52.43      0    70.00   29.96   52.43      0
"""


class Pipe(io.StringIO):
    """What stands for standard output where it is no terminal."""

    encoding = "utf-8"


def prepare(folder: Path) -> None:
    """Write the files that the commands read."""
    for kind, name in (("scenario", "first.toml"), ("plan", "plan.toml"), ("server", "server.toml")):
        shown(f"init {kind} {folder / name}", 80)
    shown(f"run d2l/async --save {folder / 'result.json'}", 80)
    (folder / "nccl.log").write_text(_LOG)
    (folder / "broken.toml").write_text('[machine]\nuse = "dgx-1w"\n[program]\nuse = "all-reduce"\nnbytes = "1 Gb"\n')


def shown(command: str, width: int) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command in a pipe of so many columns."""
    from simperf.scenario.shipped import shipped_folder

    words = shlex.split(command.replace("{shipped}", str(shipped_folder())))
    out, err, before = Pipe(), Pipe(), os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = str(width)
    truth = os.environ.pop("SIMPERF_TRUTH", "")  # measured data would make `accuracy` long
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = simperf(words)
    finally:
        os.environ.pop("COLUMNS")
        os.environ.update({"SIMPERF_TRUTH": truth} if truth else {})
        os.environ.update({"COLUMNS": before} if before is not None else {})
    return code, out.getvalue(), err.getvalue()


def keep(folder: Path) -> None:
    """Write every screen at every width, as text and as a picture."""
    from rich.console import Console
    from rich.text import Text

    facts = {}
    for width in WIDTHS:
        for name, command in SCREENS.items():
            code, out, err = shown(command, width)
            text = f"$ simperf {command}\n{out}{err}"
            (folder / f"{name}-{width}.txt").write_text(text, "utf-8")
            console = Console(record=True, width=width, file=io.StringIO())
            console.print(Text(text))
            console.save_svg(str(folder / f"{name}-{width}.svg"), title=f"simperf, {width} columns")
            widest = max(map(len, (out + err).splitlines()), default=0)
            facts[f"{name}-{width}"] = {"code": code, "lines": len(out.splitlines()), "widest": widest}
            print(f"{name}-{width}: {facts[f'{name}-{width}']}", flush=True)
    (folder / "screens.json").write_text(json.dumps(facts, indent=1))


def main(arguments: list[str]) -> int:
    """Keep all screens in a folder."""
    if len(arguments) != 1:
        print(__doc__)
        return 2
    folder = Path(arguments[0]).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    prepare(folder)
    keep(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
