"""What must not happen is found, and what is right is not: the findings as functions of texts."""

import gzip
import json
import signal

import pytest

from tests.fuzz.cases import Case
from tests.fuzz.findings import finding
from tests.fuzz.limits import Outcome
from tests.fuzz.messages import unhelpful
from tests.fuzz.numbers import odd_csv, odd_json, odd_text
from tests.fuzz.sources import results
from tests.fuzz.written import odd_file

CASE = Case(("run", "s.toml", "--set", "program.n=3"), {"s.toml": b'[scenario]\ntitle = "nan"\n'})
DEFECT = "error: TypeError: x\nThis is a defect of simperf, please report it"
TRACEBACK = "Traceback (most recent call last):\n  x\nTypeError: x\n"
OWN_CODE = "error: simperf/programs/regimes.py:78: TypeError in the program 'additions': missing 'rate'"


def test_the_time_limit_is_a_finding():
    for number in (signal.SIGXCPU, signal.SIGKILL, signal.SIGALRM):
        assert finding(Outcome(-number, "", "", 20.0), CASE)[0] == "no end"


def test_what_is_forced_may_take_any_time_but_not_any_memory():
    forced = Case(("sweep", "s.toml", "--samples", "1e18", "--force"), CASE.files)
    assert finding(Outcome(-signal.SIGXCPU, "", "", 20.0), forced) == ("", "")
    assert finding(Outcome(-signal.SIGKILL, "", "", 20.0), forced)[0] == "no end"


@pytest.mark.parametrize(
    ("code", "err", "kind"),
    [
        (2, "error: s.toml:3: machine.use: unknown machine 'x'; did you mean 'y'?\n", ""),
        (2, "error: --set: program.n: at most 9 (read: '10')\n", ""),
        (2, "error: No such option: -9\nUsage: simperf run [OPTIONS] {FILE}\n", ""),
        (2, "Usage: simperf [OPTIONS] COMMAND\n", ""),
        (2, "error: cannot run\n    expected: s.toml\n", "no place"),
        (2, "error: it does not work\n", "no place"),
        (2, "error: run: it does not work\n", "no place"),
        (2, "error: s.toml:1: program: is wrong\nerror: it must be another\n", "no way out"),
        (2, "error: s.toml:3: machine.use: it does not work\n", "no way out"),
        (2, "", "no message"),
        (2, "something is wrong", "no message"),
        (1, "", "no message"),
        (1, "fine", "no message"),
        (1, "error: cannot run\n", "no place"),
        (1, "3 of 3 points failed; their errors are in the table\n", ""),
        (130, "", "exit code"),
        (130, "interrupted", "exit code"),
        (143, "", "exit code"),
        (70, "", "exit code"),
        (-11, "", "exit code"),
        (2, DEFECT, "caught traceback"),
        (0, DEFECT, "caught traceback"),
        (1, "error: below its floor: a defect of the model, please report it", "caught traceback"),
        (2, OWN_CODE, "caught traceback"),
        (1, TRACEBACK, "traceback"),
        (0, TRACEBACK, "traceback"),
        (2, "error: s.toml:1: title: at most 9 (read: \x1b[31m)", "control"),
        (2, "error: s.toml:1: title: at most 9 (read: a\rb)", "control"),
        (0, "simperf/x.py:3: RuntimeWarning: divide by zero\n", "warning"),
        (2, "error: s.toml: this computer has not enough memory for this; try less", "memory"),
    ],
)
def test_messages_and_exit_codes(code, err, kind):
    assert finding(Outcome(code, "", err, 1.0), CASE)[0] == kind


@pytest.mark.parametrize(
    ("out", "kind"),
    [
        ("FAILED  time is 3 s, expected 2 s", ""),
        ("fine", "no message"),
    ],
)
def test_an_expectation_that_fails_says_so(out, kind):
    assert finding(Outcome(1, out, "", 1.0), CASE)[0] == kind


def test_no_command_name_is_a_place():
    assert unhelpful("error: 's.toml' is missing", ["s.toml"], [])[0] == ""
    for words in (("run",), ("calibrate", "fit"), ("scenarios", "copy")):
        case = Case((*words, "x.toml"), {})
        assert case.arguments == ("x.toml",)
        told = f"error: {words[-1]}: cannot be done\n    expected: another"
        assert unhelpful(told, case.names, case.arguments)[0] == "no place"


@pytest.mark.parametrize(
    ("text", "odd"),
    [
        ("Chain  200.0 ms\n  compute  100.0 %", False),
        ("on GPU 0  -45.00 ms  of communication", False),
        ("program.t2  +10 %  383.6 us  -8.66 %", False),
        ("gpu0 - hub0, 3-4 s, information, nanosecond", False),
        ("time  nan s", True),
        ("time nan", True),
        ("time  inf s", True),
        ("time  -inf s", True),
        ("time  Infinity", True),
        ("all pairs linked by Infinity Fabric", False),
        ("Why  nvlink=2x: overhead -72.00 us, compute +44.71 us  together: overhead -72.00 us", False),
        ("time  -3 s", True),
        ("Chain  -3.5e-09 s\n", True),
        ("memory  -852 MB", True),
        ("rate -4 GB/s", True),
        ("work -1 samples/s", True),
        ("cost  -3.00 USD", True),
        ("# simperf collective all-reduce\n#  size\n   1048576     44.84   23.38   40.92  ring/LL", False),
        ("# simperf collective all-reduce\n#  size\n   1048576     50.00   23.38   -53.2%", False),
        ("# simperf collective all-reduce\n#  size\n   1048576     -44.84   23.38   40.92  ring/LL", True),
        ("# simperf collective all-reduce\n#  size\n   1048576     44.84   nan   40.92  ring/LL", True),
        ("FAILED  s.toml: time is not as expected: 73.18 ms, expected -1.010 ms to -990.0 us (closed form: )", False),
        ("FAILED  s.toml: time is not as expected: -73.18 ms, expected 1.010 ms", True),
    ],
)
def test_numbers_in_words(text, odd):
    assert bool(odd_text(text)) == odd


@pytest.mark.parametrize(
    ("data", "odd"),
    [
        ('{"time": 1e-3, "value": 2}', False),
        ('{"change": -0.1, "seed": -3, "scenario": {"program": {"shift": -1}}}', False),
        ('[{"point": 0, "program.shift": -1, "time": 3.0, "floor": 3.0}]', False),
        ('{"time": NaN}', True),
        ('{"time": Infinity}', True),
        ('{"time": 1e999}', True),
        ('{"change": NaN}', True),
        ('{"change": -1e999}', True),
        ('{"a": {"time": -1.0}}', True),
        ('{"a": {"value": -1.0, "unit": "B"}}', True),
        ('{"metrics": {"rate": [-3.0, "1/s"]}}', True),
        ('{"draws": [1.0, -50.0]}', True),
        ('[{"time": 1.0}, {"time": -1.0}]', True),
        ('[{"point": 0, "metrics.rate": -1.0}]', True),
        ("[[1.0, NaN]]", True),
        ('{"value": 2.0, "low": 3.0, "high": 1.0}', True),
        ('{"time": 1.0, "floor": {"name": "x", "time": 2.0, "ratio": 0.5}}', True),
        ('{"time": 1.0, "floors": {"compute": 0.5, "host": 1.5}}', True),
        ('{"time": 1.0, "floor": 1.5}', True),
        ('{"metrics": {}, "spans": [["a", "b", 2.0, 1.0, "compute"]]}', True),
        ('{"time": 1.0', True),
        ("[" * 100_000, True),
    ],
)
def test_numbers_in_json(data, odd):
    assert bool(odd_json(data)) == odd


@pytest.mark.parametrize(
    ("text", "odd"),
    [
        ("name,time [s],regime,answer.metric\nnan,1.0,inf,time\n", False),
        ("point,program.shift,time,error\n0,-1,2.0,\n", False),
        ("name,time [s]\na,nan\n", True),
        ("name,time [s]\na,-1.0\n", True),
        ("name,time [s]\na,inf\n", True),
        ("point,time,metrics.rate\n0,1.0,nan\n", True),
        ("name,metrics.rate [1/s]\na,-1\n", True),
        ("name,time [s]\na,1.0,2.0\n", True),
    ],
)
def test_numbers_in_csv(text, odd):
    assert bool(odd_csv(text)) == odd


def test_a_title_that_is_spelt_as_a_number_is_none():
    for words, out in (
        (("run", "s.toml"), "nan  20.00 s\nWhy?"),
        (("run", "s.toml", "--format", "csv"), "name,time [s],ratio\nnan,20.0,1.0\n"),
    ):
        assert finding(Outcome(0, out, "", 1.0), Case(words, CASE.files)) == ("", "")
        assert finding(Outcome(0, out.replace("20.0", "nan"), "", 1.0), Case(words, {}))[0] == "number"
    named = Case(("run", "d2l/async", "--set", "scenario.title=-1 s"), {})
    assert finding(Outcome(0, "-1 s  20.00 s", "", 1.0), named) == ("", "")


PAGE = "<!doctype html>\n<html><style>a { margin: -3 s; }</style><body>%s</body>\n</html>\n"
DATA = '<script type="application/json">{"time": %s}</script>'
DRAWING = '<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg"><path d="%s"/></svg>'


@pytest.mark.parametrize(
    ("name", "raw", "odd"),
    [
        ("t.json", b'{"traceEvents": [{"ts": 1.0, "dur": 2.0}]}', False),
        ("t.json", b'{"traceEvents": [{"ts": 1.0, "dur": -2.0}]}', True),
        ("t.json", b'{"traceEvents": [{"ts": NaN, "dur": 2.0}]}', True),
        ("t.json", b'{"traceEvents": [{"ts": 1.0', True),
        ("t.json.gz", gzip.compress(b'{"traceEvents": [{"ts": -1.0}]}', mtime=0), True),
        ("t.json.gz", gzip.compress(b"{}", mtime=0)[:-3], True),
        ("t.jsonl", b'{"point": 0, "time": 1.0}\n{"point": 1, "time": 2.0}\n', False),
        ("t.jsonl", b'{"point": 0, "time": 1.0}\n{"point": 1, "time": -2.0}\n', True),
        ("t.jsonl.journal", b'{"point": 0, "time": 1.0}\n{"poi', True),
        ("t.csv", b"name,time [s]\na,nan\n", True),
        ("p.toml", b'kind = "profile"\n[model.x.constant.rate]\nvalue = 1.0\n', False),
        ("p.toml", b'kind = "profile"\n[model.x.constant.rate]\nvalue = nan\n', True),
        ("p.toml", b'kind = "profile"\n[model.x.constant.rate]\nvalue = -1.0\n', True),
        ("p.toml", b"kind = \n", True),
        ("r.html", (PAGE % (DATA % "1.0")).encode(), False),
        ("r.html", (PAGE % (DATA % "NaN")).encode(), True),
        ("r.html", (PAGE % "<b>time</b> -3 s").encode(), True),
        ("r.html", (PAGE % '<td class="n">-3 s</td><td class="n">-0.2 %%</td>').encode(), False),
        ("r.html", (PAGE % '<td class="n">-3 s</td><td class="n">2 s</td>').encode(), True),
        ("r.html", (PAGE % "<p>nvlink=2x: communication -3 us, copy +1 us</p>").encode(), False),
        ("r.html", (PAGE % "<p>nvlink=2x: communication 3 us</p> -2 us").encode(), True),
        ("r.html", (PAGE % '<svg><g id="what-if-desk-1"><text>-3 us</text></g></svg>').encode(), False),
        ("r.html", (PAGE % '<svg><g id="a-1"><text>-3 us</text></g></svg><svg id="what-if-1"></svg>').encode(), True),
        ("r.html", (PAGE % "time inf s").encode(), True),
        ("r.html", PAGE[:40].encode(), True),
        ("p.svg", (DRAWING % "M 1 2 L 3 4").encode(), False),
        ("p.svg", (DRAWING % "M 1 nan L 3 4").encode(), True),
        ("p.svg", (DRAWING % "M 1 2")[:-6].encode(), True),
        ("p.png", b"\x89PNG\r\n\x1a\n...IEND\xaeB`\x82", False),
        ("p.png", b"\x89PNG\r\n\x1a\n...", True),
        ("out.json.1234.part", b"{}", True),
        ("out", b"\xff\xfe", True),
    ],
)
def test_files_that_were_written(name, raw, odd):
    assert bool(odd_file(name, raw)) == odd
    kind, told = finding(Outcome(0, "", "", 1.0, {name: raw}), CASE)
    assert (kind, name in told) == (("file", True) if odd else ("", False))


def test_a_saved_result_is_read_back():
    raw = results()[0]
    assert odd_file("r.json", raw) == ""
    data = json.loads(raw)
    data["resources"] = {"x": {"kind": "none", "capacity": 1.0, "work": 1.0}}
    assert "not a saved result" in odd_file("r.json", json.dumps(data).encode())


def test_a_traceback_in_a_file_is_found():
    assert finding(Outcome(0, "", "", 1.0, {"r.html": TRACEBACK.encode()}), CASE)[0] == "traceback"


def test_a_variant_with_a_colon_before_its_file():
    err = "error: no spare: wait 60 s: s.toml:17: program.work: a time is expected\n"
    assert unhelpful(err, [], ["other.toml"]) == ("", "")


def test_what_is_not_installed_has_no_place_in_the_input():
    assert unhelpful("error: tracing needs PyTorch\n    pip install torch\n", [], []) == ("", "")
    assert unhelpful("error: tracing needs PyTorch\n", [], [])[0] == "no place"


def test_the_number_of_problems_that_are_not_told():
    assert unhelpful("error: b.json: and 280 problems more\n", [], []) == ("", "")


def test_what_stands_between_quotes_was_given():
    assert not odd_text('unknown node of\n  book \'-1 s\'; {"a.b":\n  "-9.2e+18 GB/s"}')
    assert odd_text("the workers' time is -1 s, and the 'ring' takes 3 s")


def test_a_name_that_begins_with_a_brace_is_no_json():
    assert finding(Outcome(0, "{0..9}  60.00 ms\n", "", 0.1), CASE) == ("", "")
