"""All tasks with an installed simperf: ``python -m tests.usability FOLDER_OF_THE_ENVIRONMENT [USER...]``.

Each task runs in an empty folder with the files that its page shows, and with the program ``simperf`` of the
environment alone. A line says how long it took, and what the answer does not name.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.usability.tasks import USERS, read_tasks


def run_task(task, programs, show=False):
    """Time of a task [s], and what its answer does not name."""
    environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "80"}
    environment.pop("PYTHONPATH", None)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        task.prepare(folder)
        environment["SIMPERF_CACHE"] = str(folder / "cache")
        begin, answer = time.monotonic(), ""
        for command in task.commands:
            done = subprocess.run(
                command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, check=False
            )
            answer += done.stdout
            if show:
                print(f"$ {command}\n{done.stdout}{done.stderr}", flush=True)
            if done.returncode:
                return time.monotonic() - begin, [f"{command}: {done.stderr}"]
        return time.monotonic() - begin, task.missing(answer, folder)


def main(arguments=None):
    """Run the tasks; the exit code is 1 if an answer lacks something."""
    parser = argparse.ArgumentParser(prog="python -m tests.usability", description=__doc__)
    parser.add_argument("environment", type=Path, help="folder of a virtual environment with simperf")
    parser.add_argument("users", nargs="*", help=f"of {', '.join(USERS)}, also as engineer-2; all by default")
    parser.add_argument("--show", action="store_true", help="print the answers")
    given = parser.parse_args(arguments)
    failed = False
    for task in read_tasks():
        if given.users and not {task.user, f"{task.user}-{task.number}"} & set(given.users):
            continue
        took, lost = run_task(task, given.environment.resolve() / "bin", given.show)
        failed |= bool(lost)
        print(f"{task.user} {task.number} {took:5.1f} s  {task.question}", flush=True)
        for what in lost:
            print(f"    not named: {what}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
