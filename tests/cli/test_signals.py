"""Requests to end: all like Ctrl-C, told apart by the exit code."""

import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path

import pytest

from simperf.cli import Ending, interruptible

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)])
def test_requests_to_end_count_as_an_interrupt_and_give_their_code(name, code):
    number = getattr(signal, name)
    usual = signal.default_int_handler if name == "SIGINT" else signal.SIG_DFL
    before = signal.signal(number, usual)
    try:
        with pytest.raises(KeyboardInterrupt), interruptible() as ending:
            os.kill(os.getpid(), number)
            time.sleep(5)
        assert signal.getsignal(number) == usual
    finally:
        signal.signal(number, before)
    assert ending.code == code


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGHUP", 129)])
def test_an_end_inside_another_gives_its_code_to_both(name, code):
    """A command that ends by itself, and is ended before it is ready to: while it still imports, for instance."""
    number = getattr(signal, name)
    before = signal.signal(number, signal.SIG_DFL)
    try:
        with interruptible() as outer:
            with pytest.raises(KeyboardInterrupt), interruptible():
                os.kill(os.getpid(), number)
                time.sleep(5)
            assert (outer.came, outer.code) == (True, code)
    finally:
        signal.signal(number, before)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_end_within_a_callback_that_cannot_raise_comes_again(capsys):
    """Python tells an exception of a weak reference's callback and goes on; imports have such callbacks."""
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    hook = sys.unraisablehook
    try:
        with pytest.raises(KeyboardInterrupt), interruptible() as ending:
            referred = {1}
            reference = weakref.ref(referred, lambda _: os.kill(os.getpid(), signal.SIGTERM))
            del referred
            time.sleep(5)
        assert reference() is None
        assert sys.unraisablehook is hook
    finally:
        signal.signal(signal.SIGTERM, before)
    assert ending.code == 143
    assert "ignored" not in capsys.readouterr().err


def test_an_end_while_a_text_is_executed_gives_its_code(tmp_path):
    (tmp_path / "hung_up.py").write_text(
        "import os, signal, time\nos.kill(os.getpid(), signal.SIGHUP)\ntime.sleep(5)\n"
    )
    text = "import sys\nfrom simperf import cli\ncli._invoke = lambda words: eval('__import__(\"hung_up\")')\n"
    (tmp_path / "started.py").write_text(text + "sys.exit(cli.main([]))\n")
    path = os.pathsep.join((str(tmp_path), str(Path(__file__).parents[2])))
    words, environment = [sys.executable, "-m", "started"], {**os.environ, "PYTHONPATH": path}
    assert subprocess.run(words, env=environment, cwd=tmp_path, check=False).returncode == 129


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_what_is_ignored_stays_ignored(name):
    number = getattr(signal, name)
    before = signal.signal(number, signal.SIG_IGN)
    try:
        with interruptible() as ending:
            os.kill(os.getpid(), number)  # as under nohup
        assert signal.getsignal(number) == signal.SIG_IGN
    finally:
        signal.signal(number, before)
    assert ending.code == Ending().code == 130


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_worker_ends_by_the_signal_itself():
    with interruptible():
        child = os.fork()
        if not child:
            try:
                os.kill(os.getpid(), signal.SIGTERM)
                time.sleep(5)
            finally:
                os._exit(1)
        _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)
    assert os.WTERMSIG(status) == signal.SIGTERM


def test_a_thread_may_have_no_handler_and_goes_without():
    before, seen = signal.getsignal(signal.SIGTERM), []

    def run():
        with interruptible() as ending:
            seen.append((ending.code, signal.getsignal(signal.SIGTERM)))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [(130, before)]
