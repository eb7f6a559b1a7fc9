"""Tracing real modules of torch: against hand counts, torch's own counter, and another batch."""

import pytest

from simperf.workload import zoo
from simperf.workload.op import MATRIX_FAMILIES
from simperf.workload.optimizers import OPTIMIZERS

torch = pytest.importorskip("torch", reason="tracing needs torch: pip install torch")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from simperf.workload.trace import trace_model  # noqa: E402
from simperf.workload.trace.kernels import kernels  # noqa: E402
from simperf.workload.trace.kinds import FREE, KINDS, kind_of  # noqa: E402
from simperf.workload.trace.update import trace_optimizer  # noqa: E402
from simperf.workload.zoo_source import ENTRIES, make, trace_entry  # noqa: E402


class Net(nn.Module):
    """A bit of everything."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.drop = nn.Dropout(0.2)
        self.head = nn.Linear(8, 4)
        self.scale = nn.LayerNorm(8)

    def forward(self, x):
        y = functional.max_pool2d(torch.relu_(self.norm(self.conv(x))), 2)
        return self.head(self.scale(self.drop(y).mean((2, 3))))


def test_every_kernel_of_a_linear_layer():
    model = trace_model(lambda: nn.Linear(48, 5), "8x48", loss="sum", optimizer="sgd")
    assert [(op.kind, op.family) for op in model.ops] == [
        ("linear", "gemm"),
        ("sum", "reduction"),
        ("fill", "elementwise"),
        ("matmul", "gemm"),  # the weight's gradient; the data's is not asked for
        ("sum", "reduction"),  # the bias's
    ]
    step = model.at(10)
    forward = step.forward[0]
    assert forward.flops == 10 * 5 * (2 * 48 + 1)
    assert (forward.nbytes_read, forward.nbytes_written) == (4 * (10 * 48 + 48 * 5 + 5), 4 * 10 * 5)
    assert (forward.gemm.m, forward.gemm.n, forward.gemm.k) == (10, 5, 48)
    weight = step.backward[1]
    assert (weight.gemm.m, weight.gemm.n, weight.gemm.k) == (5, 48, 10)
    assert weight.nbytes_read == 4 * (1 + 10 * 48)  # the sum's gradient is one number, seen as an array


def test_a_trace_at_one_batch_is_right_at_another():
    one, other = trace_model(Net, "4x3x8x8"), trace_model(Net, "7x3x8x8")
    for precision in ("fp32", "fp16", "bf16-master"):
        a, b = one.at(20, precision), other.at(20, precision)
        assert a.ops == b.ops
        assert a.gradients == b.gradients
        assert one.memory(20, precision) == other.memory(20, precision)


@pytest.mark.parametrize("name", ["resnet18", "vgg16", "bert-base-128"])
def test_products_agree_with_the_counter_of_torch(name):
    from torch.utils.flop_counter import FlopCounterMode

    entry = ENTRIES[name]
    module, _, function = entry.function.partition(":")
    source = __import__(f"simperf.workload.zoo_source.{module}", fromlist=[function])
    with torch.device("meta"):
        net = getattr(source, function)()
    tokens = name.startswith("bert")
    shape = (2, 128) if tokens else (2, 3, 224, 224)
    data = torch.empty(shape, dtype=torch.int64 if tokens else torch.float32, device="meta")
    with FlopCounterMode(display=False) as counter:
        net(data)
    assert 2 * zoo.load(name).macs(2) == counter.get_total_flops()


def test_gradients_are_ready_in_the_order_of_autograd():
    with torch.device("meta"):
        net = Net()
    order = []
    for name, weight in net.named_parameters():
        weight.register_post_accumulate_grad_hook(lambda _, name=name: order.append(name))
    net(torch.empty(2, 3, 8, 8, device="meta")).sum().backward()
    assert [gradient.name for gradient in trace_model(Net, "2x3x8x8").at(2).gradients] == order


def test_names_say_where_in_the_model():
    names = [op.name for op in trace_model(Net, "4x3x8x8").ops]
    assert names[:2] == ["conv.conv2d", "conv.bias"]
    assert {"conv.conv2d_wgrad", "head.matmul.back", "scale.layernorm_backward", "norm.batchnorm"} <= set(names)
    assert len(set(names)) == len(names)


def test_what_is_one_kernel_on_a_gpu_stays_one():
    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = nn.Linear(16, 48)

        def forward(self, x):
            q, k, v = (t.unflatten(-1, (2, 8)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
            return functional.dropout(functional.scaled_dot_product_attention(q, k, v, is_causal=True), 0.1)

    model = trace_model(Attention, "2x32x16", loss="mean")
    kinds = [op.kind for op in model.ops]
    assert kinds.count("attention") == kinds.count("attention_backward") == 1
    assert kinds.count("native_dropout") == kinds.count("native_dropout_backward") == 1
    attention = next(op for op in model.at(3).forward if op.kind == "attention")
    assert attention.flops == 4 * 3 * 2 * 32 * 32 * 8 / 2
    assert attention.nbytes_read == 4 * 3 * 2 * 32 * 8 * 3


@pytest.mark.parametrize("shape", ["8x16x4", "1x8x16x4", "2x4x16x4", "2x2x2x16x4"])
def test_attention_is_one_kernel_whatever_stands_before_length_and_width(shape):
    """Eight heads of 16 x 4, laid out in four ways: the same work."""
    model = trace_model(lambda x: functional.scaled_dot_product_attention(x, x, x).sum(), f"{shape}:float32")
    (found,) = [op for op in model.at(int(shape.split("x")[0])).forward if op.family == "attention"]
    assert found.flops == 2 * 2 * 8 * 16 * 16 * 4


def test_memory_is_kept_where_the_backward_pass_needs_it():
    """A sigmoid keeps its result for the backward pass; a negation keeps nothing."""

    class Negation(nn.Module):
        def forward(self, x):
            return -x

    def chain(kind, layers):
        return trace_model(lambda: nn.Sequential(nn.Linear(8, 8), *(kind() for _ in range(layers))), "4x8", loss="sum")

    b = 100
    sigmoids, negations = (
        [chain(kind, layers).memory(b)["activations"] for layers in (2, 6)] for kind in (nn.Sigmoid, Negation)
    )
    assert sigmoids[1] - sigmoids[0] == 4 * (b * 8 * 4)
    assert negations[1] == negations[0]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_updates_are_as_torch_runs_them(name):
    assert trace_optimizer(name) == OPTIMIZERS[name]


def test_waveglow_has_the_parameters_of_the_paper_at_its_width():
    """87.9 million with 256 channels (NVIDIA/waveglow, config.json); NVIDIA's training example has 512."""
    from simperf.workload.zoo_source.waveglow import WaveGlow

    with torch.device("meta"), pytest.warns(FutureWarning):
        paper = WaveGlow(256)
    assert sum(weight.numel() for weight in paper.parameters()) == 87_879_272
    assert zoo.load("waveglow").parameter_count == 268_294_760


@pytest.mark.parametrize("name", ["lenet", "resnet18", "bert-base-128", "gnmt"])
def test_the_zoo_is_what_its_source_gives(name, tmp_path):
    shipped, fresh = zoo.load(name), trace_entry(name)
    assert fresh.parameters == shipped.parameters
    assert fresh.ops == shipped.ops
    assert fresh.gradients == shipped.gradients
    (written,) = make([name], tmp_path)
    assert written.name == zoo.model_files()[name].name
    if shipped.traced["torch"] == fresh.traced["torch"]:
        assert written.read_bytes() == zoo.model_files()[name].read_bytes()


def test_every_model_of_the_zoo_has_a_source():
    assert sorted(ENTRIES) == sorted(zoo.names())


def test_a_model_with_weights_is_left_alone():
    net = nn.Linear(4, 4)
    before = net.weight.detach().clone()
    model = trace_model(net, "2x4")
    assert model.parameter_count == 20
    assert net.weight.device.type == "cpu"
    assert torch.equal(net.weight, before)
    assert net.weight.grad is None


def test_what_is_not_known_is_said():
    model = trace_model(lambda: nn.Sequential(nn.Linear(4, 4), nn.Mish()), "2x4", loss="mean")
    assert any("mish" in note for note in model.notes)
    assert kind_of("add_").kind == kind_of("_foreach_add").kind == "add"
    assert not FREE & set(KINDS)
    x = torch.empty(3, device="meta")
    assert not kernels("mish", (x,), operands=[x], results=[x], out=x)[0].known


def test_functions_of_tensors_have_no_parameters():
    model = trace_model(lambda x, y: (x * y).sum(), ["4x8", "4x8"])
    assert model.parameter_count == 0
    assert [op.kind for op in model.at(3).forward] == ["mul", "sum"]
    assert not any(op.family in MATRIX_FAMILIES for op in model.ops)
    assert model.at(3).update == ()
