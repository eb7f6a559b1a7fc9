"""A step of an LSTM cell is what a GPU runs for it (`simperf.workload.trace.cell`); a decoder is made of them."""

import math
from collections import Counter

import pytest

torch = pytest.importorskip("torch", reason="tracing needs torch: pip install torch")

from torch import nn  # noqa: E402

from simperf.workload import zoo  # noqa: E402
from simperf.workload.trace import trace_model  # noqa: E402
from simperf.workload.trace.cell import lstm_cell  # noqa: E402
from simperf.workload.zoo_source.tacotron import FRAMES, SEGMENTS, tacotron2  # noqa: E402

INPUTS, WIDTH = 12, 8


class Net(nn.Module):
    """Some steps of one cell, each on its own data."""

    def __init__(self, steps=1, **options):
        super().__init__()
        self.cell, self.steps = nn.LSTMCell(INPUTS, WIDTH, **options), steps

    def forward(self, x):
        state = tuple(x.new_zeros(x.shape[0], WIDTH) for _ in range(2))
        for step in range(self.steps):
            state = self.cell(x[:, step], state)
        return state[0].sum()


def traced(steps=1, **options):
    return trace_model(lambda: Net(steps, **options), f"4x{steps}x{INPUTS}")


@pytest.mark.parametrize("bias", [True, False])
def test_a_step_is_two_products_and_one_kernel_each_way(bias):
    model = traced(bias=bias)
    forward, backward = (
        Counter(op.kind for op in part) for part in (model.ops[: model.forward], model.ops[model.forward :])
    )
    assert (forward["matmul"], forward["lstm_cell"]) == (2, 1)
    assert not {"sigmoid", "tanh", "mul", "add"} & set(forward)
    assert (backward["matmul"], backward["lstm_cell_backward"], backward["sum"]) == (2, 1, int(bias))
    (cell,) = [op for op in model.ops if op.kind == "lstm_cell"]
    assert cell.flops.at(3) == (3 * 14 + 2 * 8 + 4 + 3 * 4) * 3 * WIDTH
    assert sum(item.elements.at(3) for item in cell.reads) == (2 * 4 + 1) * 3 * WIDTH + bias * 2 * 4 * WIDTH
    assert sum(item.elements.at(3) for item in cell.writes) == (1 + 1 + 4) * 3 * WIDTH


def test_gradients_of_all_steps_are_added_up_before_they_are_ready():
    """Each weight has one product a step, and one addition fewer; the first state's products have no gradient."""
    steps = 5
    model = traced(steps)
    back = Counter(op.kind for op in model.ops[model.forward :])
    assert back["lstm_cell_backward"] == back["sum"] == steps
    assert back["matmul"] == 2 * steps + steps - 1, "the weights' of inputs and state, the state's"
    weights = {order.parameter: order.after for order in model.gradients}
    last = max(i for i, op in enumerate(model.ops) if op.kind == "lstm_cell_backward")
    assert len(weights) == 4
    assert min(weights.values()) > last


def test_tensors_with_data_are_left_to_torch():
    cell = nn.LSTMCell(INPUTS, WIDTH)
    x, h, c = torch.randn(3, INPUTS), torch.randn(3, WIDTH), torch.randn(3, WIDTH)
    found = lstm_cell(torch.lstm_cell)(x, (h, c), cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh)
    assert all(torch.equal(one, other) for one, other in zip(found, cell(x, (h, c)), strict=True))


def test_the_shipped_tacotron_is_what_its_source_gives():
    with torch.device("meta"):
        shapes = {name: tuple(weight.shape) for name, weight in tacotron2().named_parameters()}
    shipped = zoo.load("tacotron2")
    assert {p.name: p.shape for p in shipped.parameters} == shapes
    assert shipped.inputs[1].shape == (80, FRAMES)
    kinds = Counter(op.kind for op in shipped.ops)
    assert kinds["lstm_cell"] == kinds["lstm_cell_backward"] == 2 * FRAMES
    assert kinds["softmax"] == FRAMES, "attention once a frame"


def test_segments_make_the_longest_clip_of_the_data():
    """10.1 s at 22,050 samples a second, 256 of them a frame (K. Ito, The LJ Speech Dataset, 2017)."""
    assert math.ceil(10.1 * 22_050 / 256) == FRAMES * SEGMENTS
