"""A command line that runs in this process."""

import pytest

from simperf.cli import main


@pytest.fixture
def simperf(capsys, tmp_path, monkeypatch):
    """Run a command in an empty folder; gives its exit code, standard output and standard error."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return code, out, err

    return run


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """A cache of the test's own."""
    monkeypatch.setenv("SIMPERF_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def chain(tmp_path):
    """A small scenario with two variants."""
    path = tmp_path / "chain.toml"
    path.write_text(
        '[scenario]\ntitle = "Chain"\n[program]\nuse = "async-chain"\nn = 10\nt1 = "1 ms"\nt2 = "2 ms"\nt3 = "1 ms"\n'
        '[expect]\nkind = "closed form"\nsource = "t1 + n t2 + t3"\ntime = "22 ms"\n'
        'compare = { "slow/fast" = { min = 1.5, max = 2 } }\n'
        '[[compare]]\nname = "fast"\nexpect = { kind = "regression", time = "22 ms" }\n'
        '[[compare]]\nname = "slow"\nset = { "execution.mode" = "synchronous" }\n'
        'expect = { kind = "regression", time = "41 ms" }\n'
    )
    return path
