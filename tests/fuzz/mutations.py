"""Odd values, and changes of texts and of trees of tables and lists."""

import copy
import datetime
import math
import re

#: what may stand in place of any value
WORDS = (
    *("", " ", "use", "gpu0", "16 GB/s", "0 s", "-1 s", "1e30 s", "1e-30 s", "5 Gb/s", "1e999 s", "nan", "inf", "0 B"),
    *("1e-30 GB/s", "0 GB/s", "{0..3}", "{9..1}", "{0..999999999}", "n0/gpu0", "\x00", "eager", "a/b", "../x"),
    *("/dev/zero", "a" * 3000, "é\u202e\U0001f600", "true", "[]", "1/0", "100 %", "-5 %", "1e18", "auto", "unlimited"),
    *(
        "dgx-1v",
        "v100",
        "\x1b[31mred\x1b[0m",
        "\x07\x08",
        "a\rb",
        "a\nb",
        "\u2028",
        "\x85",
        "\u200b",
        "e\u0301",
        "\uff11\uff12",
    ),
    *(
        "\u0661\u0662 s",
        "\u00b2",
        "1\u00a0s",
        "\ufeff1",
        "\U00010ffff",
        "%s%n",
        "{}",
        "$(id)",
        "\\",
        "'",
        '"',
        "1e-400",
        "0x10",
        "1_0",
    ),
)
#: of nesting and of digits
DEPTHS, DIGITS = (64, 400, 5000, 100_000), (20, 400, 5000, 50_000)
NUMBERS = (0, 1, -1, 2, 3, 7, 1000, 10**6, 10**9, 10**12, 10**18, 2**63 - 1, -(2**63), 0.0, -0.0, 0.5, 1e-300, 1e300)
ODD = (math.nan, math.inf, -math.inf, 2**63, 10**400)
QUANTITIES = ("s", "ms", "us", "B", "MB", "GiB", "GB/s", "Gbit/s", "TFLOP/s", "W", "x", "%", "", "Hz", "km")


def value(rng, old=None):
    """An odd value, often near what stood there."""
    kind = rng.random()
    near = re.fullmatch(r"\s*([\d.,_]+)(.*)", old) if isinstance(old, str) else None
    if kind < 0.45 and near is not None:
        scale = rng.choice(["0", "-1", "1e-30", "1e30", "1e18", "1e-9", "1000", "0.001", "3", "0.5"])
        return f"{scale}{near.group(2)}"
    if kind < 0.45 and isinstance(old, int | float) and not isinstance(old, bool):
        try:
            choices = [-old, old * 10 ** rng.randint(-12, 12), type(old)(old + rng.choice([-1, 1])), float(old), 0]
            return rng.choice(choices)
        except OverflowError:
            return 0
    if kind < 0.5 and isinstance(old, str):
        return rng.choice([old.upper(), old + "x", old[: len(old) // 2], old * 2, old.replace(" ", ""), [old]])
    if kind < 0.5 and isinstance(old, bool):
        return not old
    if kind < 0.6:
        return f"{rng.choice(NUMBERS):g} {rng.choice(QUANTITIES)}"
    if kind < 0.7:
        return rng.choice(NUMBERS)
    if kind < 0.75:
        return rng.choice(ODD)
    if kind < 0.9:
        return rng.choice(WORDS)
    plain = (True, False, [], {}, [[]], [1, "a"], {"a": {"b": 1}}, [0] * 300, datetime.date(2020, 1, 1), nested(rng))
    return copy.deepcopy(rng.choice(plain))


def nested(rng):
    """Lists in one another."""
    found = []
    for _ in range(rng.choice([3, 30, 80])):
        found = [found]
    return found


def endless(rng):
    """A text of deep nesting, or of many digits, parts or letters."""
    if rng.random() < 0.5:
        mark, count = rng.choice(["[", "{a=", '{"a":', "(", "-", "[[1],", "a.", "~", "{0.."]), rng.choice(DEPTHS)
        return mark * count + rng.choice(["", "1", "]" * count, "}" * count])
    count = rng.choice(DIGITS)
    few = [
        "9" * count,
        "0." + "0" * count + "1",
        "1e" + "9" * count,
        "1" + "_0" * count,
        "a" * count,
        "-" + "9" * count,
    ]
    return rng.choice(few) + rng.choice(["", "", " s", " GB/s"])


def places(tree, path=()):
    """Every key path of nested tables and lists; of long lists a few entries."""
    items = list(tree.items()) if isinstance(tree, dict) else list(enumerate(tree)) if isinstance(tree, list) else []
    if isinstance(tree, list) and len(items) > 6:
        items = [*items[:3], items[len(items) // 2], *items[-2:]]
    for key, each in items:
        yield (*path, key)
        yield from places(each, (*path, key))


def change(rng, tree):
    """Change one place of a tree; gives the key path."""
    paths = list(places(tree))
    if not paths:
        return ()
    if rng.random() < 0.4:
        return _scaled(rng, tree, paths)
    # a random depth first, so that long lists do not outweigh short tables
    depth = rng.choice(sorted({len(path) for path in paths}))
    *parents, last = rng.choice([path for path in paths if len(path) == depth])
    here = tree
    for step in parents:
        here = here[step]
    how = rng.choice(["replace"] * 6 + ["delete", "add", "rename", "double", "swap"])
    if how == "delete":
        del here[last]
    elif how == "add" and isinstance(here, dict):
        here[rng.choice(["x", "format", "use", "", "a.b", "kind", str(last) + "s"])] = value(rng)
    elif how == "rename" and isinstance(here, dict):
        here[str(last)[:-1] or "z"] = here.pop(last)
    elif how == "double" and isinstance(here, list):
        here.insert(0, copy.deepcopy(here[last]))
    elif how == "swap":
        *others, other = rng.choice(paths)
        there = tree
        try:
            for step in others:
                there = there[step]
            here[last] = copy.deepcopy(there[other])
        except (KeyError, IndexError, TypeError):
            here[last] = value(rng)
    else:
        here[last] = value(rng, here[last])
    return (*parents, last)


def _scaled(rng, tree, paths):
    """Change a number, or that of a quantity, to one that may be right."""
    *parents, last = rng.choice(paths)
    here = tree
    for step in parents:
        here = here[step]
    old, scale = here[last], rng.choice([0, 0.001, 0.5, 2, 3, 10, 1000])
    near = re.fullmatch(r"([\d.]+)( ?[a-zA-Z/%]+)?", old) if isinstance(old, str) else None
    if near is not None and near.group(1).count(".") < 2:
        here[last] = f"{float(near.group(1)) * scale:g}{near.group(2) or ''}"
    elif isinstance(old, int | float) and not isinstance(old, bool) and abs(old) < 1e15:
        here[last] = type(old)(old * scale)
    elif isinstance(old, bool):
        here[last] = not old
    else:
        here[last] = value(rng, old)
    return (*parents, last)


def scrambled(rng, raw):
    """Change a text as bytes."""
    text = bytearray(raw)
    at = rng.randrange(len(text) + 1)
    how = rng.choice(["cut", "insert", "lines", "end", "number", "key", "deep", "flip", "marks"])
    lines = raw.splitlines(keepends=True)
    if how == "cut":
        del text[at : at + rng.choice([1, 5, 100])]
    elif how == "insert":
        marks = [b"\0", b'"', b"[", b"]", b"{", b"=", b"\xff\xfe", b"'''", b"#", b",", b"1e999", b"-"]
        text[at:at] = rng.choice(marks)
    elif how == "lines" and lines:
        one = rng.randrange(len(lines))
        twice, without = [*lines[:one], lines[one], *lines[one:]], [*lines[:one], *lines[one + 1 :]]
        return b"".join(rng.choice([twice, without, lines[::-1]]))
    elif how == "end":
        del text[at:]
    elif how == "number":
        text[at:at] = b"9" * rng.choice([5, 400, 5000])
    elif how == "key":
        text += b"\n" + b"a." * rng.choice([5, 70, 5000]) + b"b = 1\n"
    elif how == "deep":
        mark = rng.choice([b"[", b'{"a":', b"[{"])
        text[at:at] = mark * rng.choice([20, 100, 200_000])
    elif how == "flip" and text:
        for _ in range(rng.choice([1, 10])):
            text[rng.randrange(len(text))] = rng.randrange(256)
    elif how == "marks":
        other = [raw.replace(b"\n", b"\r\n"), raw.replace(b"\n", b"\r")]
        return rng.choice([b"\xef\xbb\xbf" + raw, *other, raw + raw, b""])
    return bytes(text)
