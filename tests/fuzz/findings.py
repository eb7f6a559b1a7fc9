"""What must never come of a case: tracebacks, no end, numbers that cannot be, messages that name no place."""

import re
import signal

from tests.fuzz.messages import blocks, unhelpful
from tests.fuzz.numbers import odd_csv, odd_json, odd_text
from tests.fuzz.written import odd_file

__all__ = ["finding"]

#: an error of Python's own in a program that is simperf's
_OWN_CODE = re.compile(r"simperf/\S+\.py:\d+: \w+ in the program")
#: a difference of a row of `simperf explain`
_DIFFERENCES = re.compile(r"^(\S[^\n]*?\d \w+ +\S+ \w+ +)-(\d)", re.M)
#: why a command that is not refused may end with 1: an expectation failed, every point of a sweep did, or a bound was
#: not held
_FAILED = re.compile(r"\bFAILED\b|,failed,|\"ok\": false|^failed |points failed|points are off by", re.M)
#: texts that are told as they were given; in a file of JSON or TOML, in CSV, and in a command line
_GIVEN = re.compile(
    r'"?(?:title|name|op|question|source|notes?|label|use|id|hostname|device_info|gpu|why|metric|unit|target)"?\s*[:=]\s*'
    r'"((?:[^"\\]|\\.)*)"'
)
#: what moves a terminal's cursor or changes its colours, but for lines and tabs
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SETS = re.compile(r"(?:title|name|question|source|notes|label)=(.*)", re.S)
#: of a file that is looked at [B]
_MOST = 20_000_000


def finding(outcome, case):
    """What is wrong with the outcome of a case, and the words that show it; two empty texts if nothing is."""
    texts = {"standard error": outcome.err, "standard output": outcome.out}
    texts |= {name: raw[:_MOST].decode("utf-8", "replace") for name, raw in outcome.files.items()}
    return (
        _ended(outcome, case)
        or next((told for name, text in texts.items() if (told := _fault(name, text))), None)
        or _unexplained(outcome, case)
        or _odd_answer(outcome, case)
        or ("", "")
    )


def _ended(outcome, case):
    if "--force" in case.words and outcome.code in (-signal.SIGXCPU, -signal.SIGALRM):
        return "", ""  # what may take any time is asked for
    if outcome.code in (-signal.SIGXCPU, -signal.SIGKILL, -signal.SIGALRM):
        return "no end", f"{outcome.seconds:.0f} s"
    return None if outcome.code in (0, 1, 2) else ("exit code", f"{outcome.code}: {outcome.err[-200:]}")


def _fault(name, text):
    """A fault of simperf itself that a text tells."""
    if "Traceback (most recent call last)" in text:
        return "traceback", f"{name}: {text.strip().splitlines()[-1][:300]}"
    if name.startswith("standard ") and (found := _CONTROL.search(text)):
        return "control", f"{name}: {text[max(0, found.start() - 100) : found.end() + 100]!a}"
    if name == "standard error":
        if "This is a defect of simperf" in text or "a defect of the model" in text or _OWN_CODE.search(text):
            return "caught traceback", text.strip().splitlines()[0][:300]
        if "MemoryError" in text or "not enough memory" in text:
            return "memory", next(line for line in text.splitlines() if "emory" in line)[:300]
        if re.search(r"^\S*: \w*Warning: ", text, re.M):
            return "warning", text[:300]
    return None


def _unexplained(outcome, case):
    """An exit code other than 0 that no message explains, or whose message helps nobody."""
    if outcome.code == 0:
        return None
    if not blocks(outcome.err):
        failed = outcome.code == 1 and _FAILED.search(outcome.out + outcome.err)
        usage = outcome.code == 2 and "Usage: " in outcome.err
        return None if failed or usage else ("no message", f"exit code {outcome.code}: {outcome.err[:300]!r}")
    kind, told = unhelpful(outcome.err, case.names, case.arguments)
    return (kind, told) if kind else None


def _odd_answer(outcome, case):
    """A number in what was answered or written that is none, or negative where it cannot be."""
    echoes = _echoes(case)
    told = _odd_output(outcome.out, echoes, case)
    if told:
        return "number", told
    for name, raw in outcome.files.items():
        if len(raw) <= _MOST and (told := odd_file(name, raw, echoes)):
            return "file", f"{name}: {told}"
    return None


def _odd_output(out, echoes, case):
    begin = out.lstrip()[:2]
    if begin in ("{}", "{\n", '{"', "[]", "[{", "[\n"):  # other braces stand in names
        return odd_json(out)
    if "csv" in case.words and re.match(r"[\w .-]+(?: \[[^\]]*\])?,", out):
        return odd_csv(out)
    if case.words[:1] == ("explain",):  # its fourth column has differences, with signs
        out = _DIFFERENCES.sub(r"\1\2", out)
    if "--what-if" in case.words:  # changes have signs
        out = re.sub(r"(?<=\s)-(?=\d)", "", out)
    return odd_text(out, echoes)


def _echoes(case):
    """Titles and names that the files and the command line of a case give."""
    found = [one for raw in case.files.values() for one in _GIVEN.findall(raw[:_MOST].decode("utf-8", "replace"))]
    return [*found, *(given.group(1) for word in case.words if (given := _SETS.search(word)))]
