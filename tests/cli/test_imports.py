"""What a command does not import: a plain start stays fast."""

import subprocess
import sys

import pytest

HEAVY = ("matplotlib", "scipy", "pandas", "torch", "IPython")
#: what help and listings do without, too
LIGHT = (*HEAVY, "numpy", "networkx", "simpy", "rich", "quantiphy")
CODE = """
import sys
from simperf.cli import main
code = main({words!r})
print(",".join(sorted(name for name in sys.modules if "." not in name)), file=sys.stderr)
sys.exit(code)
"""


@pytest.mark.parametrize(
    ("words", "absent"),
    [
        (["--help"], LIGHT),
        (["--version"], LIGHT),
        ([], LIGHT),
        (["rn"], LIGHT),
        (["run", "--help"], LIGHT),
        (["run", "d2l/sync-160mb"], (*HEAVY, "networkx")),
        (["compare", "d2l/sync-160mb"], (*HEAVY, "networkx")),
        (["run", "d2l/async", "--format", "json"], (*HEAVY, "networkx", "rich")),
    ],
)
def test_modules_that_stay_out(words, absent, tmp_path):
    command = [sys.executable, "-c", CODE.format(words=words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path, check=False)
    assert done.returncode == (2 if words == ["rn"] else 0), done.stderr
    loaded = set(done.stderr.splitlines()[-1].split(","))
    assert "typer" in loaded
    assert not loaded & set(absent)
