"""What cannot be traced is told in words, with the line, and exit code 2 (`target`, `tracer`, `fit`, cli)."""

import json
import sys

import pytest

from simperf.cli import main
from simperf.errors import InputError, SimperfError
from simperf.workload.trace import load_target, parse_input, require_torch
from simperf.workload.trace.loss import find_loss

SOURCE = """\
import torch
from torch import nn


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)


class Branch(Base):
    def forward(self, x):
        y = self.a(x)
        if y.sum() > 0:
            return y
        return -y


class Item(Base):
    def forward(self, x):
        return self.a(x) * x.max().item()


class Mask(Base):
    def forward(self, x):
        y = self.a(x)
        return y[y > 0]


class Broken(Base):
    def forward(self, x):
        return self.a(x).undefined()


class Square(Base):
    def forward(self, x):
        z = self.a(x)
        return z @ z.t()


class Fixed(Base):
    def forward(self, x):
        return self.a(x).view(8, 4)


class Rows(Base):
    def forward(self, x):
        return sum(self.a(row) for row in x)


class Nothing(Base):
    def forward(self, x):
        return "text"


def good():
    return nn.Linear(4, 4)


def number():
    return 3


def fails():
    raise ValueError("no such layer")
"""


@pytest.fixture
def nets(tmp_path):
    path = tmp_path / "nets.py"
    path.write_text(SOURCE)
    return path


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Branch", ("nets.py:14", "asks for the value of a tensor", "if y.sum() > 0:", "torch.where")),
        ("Item", ("nets.py:21", "asks for the value", "x.max().item()")),
        ("Mask", ("nets.py:27", "asks for the value", "y[y > 0]")),
        ("Broken", ("nets.py:32", "AttributeError in the forward pass", "'undefined'")),
        ("Square", ("matmul", "does not grow evenly with the batch", "2048 at batch 16")),
        ("Fixed", ("nets.py:43", "with inputs 16x4", "it runs at batch 8, but not at 16")),
        ("Rows", ("other operations at batch 16 than at batch 8",)),
        ("Nothing", ("returned str", ".logits")),
        ("number", ("the function made int", "an nn.Module")),
        ("fails", ("nets.py:", "no such layer", "while the model was made")),
        ("godo", ("no 'godo' in it", "did you mean 'good'")),
    ],
)
def test_models_that_cannot_be_traced(nets, tmp_path, capsys, name, words):
    pytest.importorskip("torch", reason="tracing needs torch: pip install torch")
    target = tmp_path / "m.json"
    assert main(["trace", f"{nets}:{name}", "--input", "8x4", "-o", str(target)]) == 2
    message = capsys.readouterr().err
    for word in words:
        assert word in message
    assert "Traceback" not in message
    assert not target.exists()


def test_a_good_one_is_written(nets, tmp_path, capsys):
    pytest.importorskip("torch", reason="tracing needs torch: pip install torch")
    target = tmp_path / "m.toml"
    words = ["trace", f"{nets}:good", "--input", "8x4", "-o", str(target), "--optimizer", "adam", "--format", "json"]
    assert main(words) == 0
    rows = {row["what"]: row["value"] for row in json.loads(capsys.readouterr().out)}
    assert rows["parameters"] == 20
    assert main(["zoo", "show", str(target), "--kernels", "--format", "csv"]) == 0
    assert "linear,gemm,fp32" in capsys.readouterr().out
    wrong = ["trace", f"{nets}:good", "--input", "8x5", "-o", str(target)]
    assert main(wrong) == 2
    assert "with inputs 8x5:float32" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("8x3x4y4", "is no shape"),
        ("", "is no shape"),
        ("-3x4", "is no shape"),
        ("0x4", "1 or more"),
        ("8x99999999999999", "1 or more"),
        ("8x4:flot32", "did you mean 'float32'"),
    ],
)
def test_bad_shapes(text, message):
    with pytest.raises(InputError, match=message):
        parse_input(text)


def test_bad_command_lines(tmp_path, capsys):
    target = str(tmp_path / "m.json")
    for words, message in (
        (["trace", "nets", "--input", "8x4", "-o", str(tmp_path / "m.bin")], ".json, .json.gz or .toml"),
        (["trace", "nets", "--input", "8x4", "-o", str(tmp_path / "no" / "m.json")], "no folder"),
        (["trace", "nets", "--input", "8by4", "-o", target], "is no shape"),
        (["trace", "nets", "--input", "8x4", "--loss", "cross", "-o", target], "no loss 'cross'"),
        (["trace", "nets", "--input", "8x4", "--optimizer", "adm", "-o", target], "did you mean 'adam'"),
        (["zoo", "show", "resnet5"], "did you mean"),
        (["zoo", "show", "lenet", "--precision", "fp17"], "did you mean 'fp16'"),
        (["zoo", "make", "lenet", "--to", str(tmp_path / "no")], "no such folder"),
    ):
        assert main(words) == 2
        assert message in capsys.readouterr().err


def test_targets_that_are_not_there(tmp_path):
    (tmp_path / "syntax.py").write_text("x = 1\ndef net(:\n")
    (tmp_path / "imports.py").write_text("import no_such_thing_at_all\n")
    for reference, message in (
        ("nets", "names no function"),
        (f"{tmp_path}/missing.py:net", "no such Python file"),
        (f"{tmp_path}/syntax.py:net", "syntax.py:2: not valid Python"),
        (f"{tmp_path}/imports.py:net", "imports.py:1: ModuleNotFoundError"),
        ("no_such_module_here:net", "no module 'no_such_module_here'"),
        ("json:lods", "did you mean 'loads'"),
    ):
        with pytest.raises(InputError, match=message):
            load_target(reference)
    with pytest.raises(InputError, match="no loss"):
        find_loss("none")


def test_without_torch_the_way_to_get_it_is_said(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(SimperfError, match=r"pip install torch"):
        require_torch()
    assert main(["trace", "nets.py:net", "--input", "8x4", "-o", str(tmp_path / "m.json")]) == 2
    assert "pip install torch" in capsys.readouterr().err


def test_the_zoo_is_listed_and_shown(capsys):
    assert main(["zoo", "list", "--format", "json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["resnet50"]["parameters"] == 25_557_032
    assert main(["zoo", "show", "resnet50", "--batch", "64", "--precision", "bf16"]) == 0
    text = capsys.readouterr().out
    assert "25,557,032" in text
    assert "memory at the peak" in text


def test_a_transformer_whose_kernels_depend_on_a_layout_is_shown_by_its_arithmetic(capsys):
    assert main(["zoo", "show", "mixtral-8x7b", "--batch", "2", "--format", "json"]) == 0
    shown = {row["what"]: row["value"] for row in json.loads(capsys.readouterr().out)}
    assert shown["parameters"] == 46_702_792_704
    tokens, layers, heads, width = 32_768, 32, 32, 128
    ends = 32_000 * 4096  # the embedding is not multiplied with; norms are not counted
    products = shown["parameters that a token meets"] - ends - (2 * layers + 1) * 4096
    attention = 4 * layers * tokens * heads * width
    assert shown["step: model FLOP, a token"] == pytest.approx(6 * products + 3 * attention, rel=1e-12)
    again = 2 * (products - ends) + attention
    step = 2 * tokens * (6 * products + 3 * attention + again)
    assert shown["step: hardware FLOP, layers computed again"] == pytest.approx(step, rel=1e-12)
    assert main(["zoo", "show", "mixtral-8x7b"]) == 0
    assert "12,879,925,248" in capsys.readouterr().out
    assert main(["zoo", "show", "mixtral-8x7b", "--kernels", "--precision", "bf16"]) == 2
    told = capsys.readouterr().err
    assert "--kernels: has no effect" in told
    assert "--precision: has no effect" in told
