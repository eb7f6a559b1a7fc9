"""A recommender: tables of embeddings too large for one device, and dense layers that every device has.

M. Naumov and others, "Deep Learning Recommendation Model for Personalization and Recommendation Systems" (2019), as
NVIDIA/DeepLearningExamples (PyTorch/Recommendation/DLRM) trains it: the tables and the bottom layers are spread over
the devices, each of which looks up its vectors for the whole batch; the interaction and the top layers are copied to
all, each of which works on its part of the batch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from simperf.engine.device import Device
from simperf.engine.kernel import Kernel
from simperf.errors import InputError, Problem
from simperf.execution.session import Session
from simperf.training.step import Gradient, ReplicaStep
from simperf.workload import Op
from simperf.workload.mixed import training_precision
from simperf.workload.op import Gemm
from simperf.workload.precision import PRECISIONS

__all__ = ["RankPart", "Recommender", "spread"]

#: weights, their gradients and the tables are fp32 whatever the products are [B]
WIDE = 4

#: passes of a radix sort of 64-bit indices, which reads and writes index and place in each
SORT_PASSES = 8
INDEX = 8


def spread(tables: Sequence[int], devices: int) -> list[list[int]]:
    """Tables of each device, by number: the largest one left goes to the device with the fewest rows.

    No device gets more than its share of the number of tables. With more than four devices the first one gets none,
    since it has the bottom layers (the heuristic of NVIDIA's example).

    Parameters
    ----------
    tables : sequence of int
        Rows of each.
    devices : int

    Examples
    --------
    >>> spread([5, 40, 10, 30], 2)
    [[1, 0], [3, 2]]
    """
    takers = devices - 1 if devices > 4 else devices
    most = math.ceil(len(tables) / takers)
    found: list[list[int]] = [[] for _ in range(takers)]
    for table in sorted(range(len(tables)), key=lambda i: -tables[i]):
        left = [bucket for bucket in found if len(bucket) < most]
        min(left, key=lambda bucket: sum(tables[i] for i in bucket)).append(table)
    return found if takers == devices else [[], *found]


@dataclass(frozen=True, slots=True)
class RankPart:
    """One device's step. Its batch is there when it begins: it is fetched on a stream of its own.

    Parameters
    ----------
    step : ReplicaStep
        All its kernels; its gradients are those of the top layers.
    before, after : int
        Kernels of the forward pass before the vectors are exchanged; of the backward pass before their gradients are.
    nbytes : float
        vectors that the device has for the whole batch [B]
    """

    step: ReplicaStep
    before: int
    after: int
    nbytes: float


@dataclass(frozen=True, slots=True)
class Recommender:
    """Shapes of the model.

    Parameters
    ----------
    tables : tuple of int
        rows of each table of embeddings; one is looked up a sample
    width : int
        elements of a row
    dense : int
        numbers that a sample has beside
    bottom : tuple of int
        widths of the layers for those numbers; the last is the width of a row
    top : tuple of int
        widths of the layers after the interaction
    precision : str
        of the layers; tables are fp32
        (a key of `simperf.workload.mixed.TRAINING_PRECISIONS`)

    Raises
    ------
    InputError
        No layers, sizes below 1, or bottom layers that do not end with the width of a row.
    """

    tables: tuple[int, ...] = ()
    width: int = 128
    dense: int = 13
    bottom: tuple[int, ...] = (512, 256, 128)
    top: tuple[int, ...] = (1024, 1024, 512, 256, 1)
    precision: str = "fp32"

    def __post_init__(self) -> None:
        training_precision(self.precision)
        groups = {"tables": self.tables, "bottom": self.bottom, "top": self.top, "width": (self.width,)}
        problems = [
            Problem("sizes of 1 and more, and at least one, are expected", key=key, value=str(list(sizes)))
            for key, sizes in {**groups, "dense": (self.dense,)}.items()
            if min(sizes, default=0 if key != "tables" else 1) < 1
        ]
        if self.bottom and self.bottom[-1] != self.width:
            message = f"the bottom layers must end with the width of a row, {self.width}"
            problems.append(Problem(message, key="bottom", value=str(self.bottom[-1]), expected=str(self.width)))
        if problems:
            raise InputError(problems)

    @property
    def vectors(self) -> int:
        """Vectors of a sample: one of each table, and that of the bottom layers."""
        return len(self.tables) + 1

    @property
    def crossed(self) -> int:
        """Width of the interaction's output: products of all pairs and the bottom's vector, padded to 8."""
        raw = self.vectors * (self.vectors - 1) // 2 + self.width
        return -(-raw // 8) * 8

    @property
    def activation(self) -> int:
        """An element between layers [B]."""
        mode = training_precision(self.precision)
        return int(PRECISIONS[mode.matrix] if mode.autocast else PRECISIONS[mode.weights])

    def weights(self, fan_in: int, widths: Sequence[int]) -> int:
        """Weights and biases of layers."""
        ends = zip((fan_in, *widths), widths, strict=False)
        return sum(a * b + b for a, b in ends)

    def part(
        self, m: Session, device: Device, tables: Sequence[int], *, batch: int, share: int, bottom: bool
    ) -> RankPart:
        """One device's part of a step.

        Parameters
        ----------
        m : Session
            Costs the operations.
        device : Device
        tables : sequence of int
            Numbers of its tables.
        batch, share : int
            Samples of all devices, and of this one in the top layers.
        bottom : bool
            Whether it has the bottom layers.
        """
        own = len(tables)
        lookups = list(self._lookups(batch, own)) if own else []
        low = self._layers("bottom", self.dense, self.bottom, rows=batch) if bottom else ([], [])
        high = self._layers("top", self.crossed, self.top, rows=share)
        first = [*low[0], *lookups]
        vectors = float(self.activation * share * self.vectors * self.width)
        join = Op("join vectors", "cat", 0.0, vectors, vectors, family="copy")
        forward = [*first, join, self._interaction(share, back=False), *high[0]]
        parted = [replace(join, name="part gradients")] if share < batch else []  # seen, not copied, on one device
        top = [*high[1], self._interaction(share, back=True), *parted]
        backward = [*top, *low[1], *(self._updates(batch, own) if own else ())]
        top_weights = self.weights(self.crossed, self.top)
        weights = top_weights + (self.weights(self.dense, self.bottom) if bottom else 0)
        update = [Op("update", "sgd", 2.0 * weights, 2.0 * WIDE * weights, 1.0 * WIDE * weights, family="optimizer")]

        def kernels(ops: Sequence[Op]) -> tuple[Kernel, ...]:
            return tuple(m.kernel(op, device) for op in ops)

        ends = [i for i, op in enumerate(backward) if op.name.startswith("top wgrad")]
        sizes = list(zip((self.crossed, *self.top), self.top, strict=False))[::-1]
        gradients = tuple(
            Gradient(f"top{len(sizes) - 1 - i}", float(WIDE * (a * b + b)), ends[i]) for i, (a, b) in enumerate(sizes)
        )
        here = own + bottom
        rows = sum(self.tables[i] for i in tables)
        step = ReplicaStep(
            "recommender",
            float(share),
            kernels(forward),
            kernels(backward),
            kernels(update),
            gradients,
            memory={
                "tables": float(WIDE * rows * self.width),
                "weights": float(WIDE * weights),
                "gradients": float(WIDE * weights + WIDE * batch * own * self.width),
                "activations": float(self.activation * (2 * batch * here * self.width + share * self._kept())),
            },
        )
        return RankPart(step, len(first), len(top), float(self.activation * batch * here * self.width))

    def _kept(self) -> int:
        """Elements that a sample keeps for the backward pass of the top."""
        return self.vectors * self.width + self.crossed + sum(self.top)

    def _layers(self, name: str, fan_in: int, widths: Sequence[int], *, rows: int) -> tuple[list[Op], list[Op]]:
        """Fully connected layers with bias and ReLU inside the product, as NVIDIA's fused ones."""
        mode = training_precision(self.precision)
        half, each = mode.matrix, self.activation
        forward: list[Op] = []
        backward: list[Op] = []
        for index, (a, b) in enumerate(zip((fan_in, *widths), widths, strict=False)):
            product = 2.0 * rows * a * b
            inputs, outputs, weights = each * rows * a, each * rows * b, each * a * b

            def op(kind: str, read: float, written: float, gemm: Gemm, *, i: int = index, f: float = product) -> Op:
                return Op(f"{name} {kind}{i}", kind, f, read, written, half, "gemm", gemm=gemm)

            forward.append(op("linear", inputs + weights, outputs, Gemm(1, rows, b, a)))
            mask = Op(
                f"{name} bias and mask{index}", "threshold_backward", 2.0 * rows * b, 2.0 * outputs, 1.0 * outputs
            )
            back = [mask, op("wgrad", outputs + inputs, WIDE * a * b, Gemm(1, b, a, rows))]
            if index or name == "top":
                back.append(op("dgrad", outputs + weights, inputs, Gemm(1, rows, a, b)))
            backward[:0] = back
        return forward, backward

    def _interaction(self, share: int, *, back: bool) -> Op:
        """Products of all pairs of a sample's vectors, in one kernel that reads the vectors once."""
        vectors, out = share * self.vectors * self.width, share * self.crossed
        flops = 2.0 * share * self.vectors**2 * self.width
        if not back:
            return Op("interaction", "interaction", flops, 1.0 * self.activation * vectors, 1.0 * self.activation * out)
        read = self.activation * (vectors + out)
        return Op("interaction back", "interaction", 2 * flops, 1.0 * read, 1.0 * self.activation * vectors)

    def _lookups(self, batch: int, tables: int) -> Iterator[Op]:
        """Rows of fp32, and their conversion where layers take less."""
        vectors = batch * tables * self.width
        yield Op("lookup", "embedding", 0.0, WIDE * vectors + INDEX * batch * tables, WIDE * vectors, family="copy")
        if self.activation != WIDE:
            yield Op("to half", "cast", 0.0, WIDE * vectors, self.activation * vectors, family="copy")

    def _updates(self, batch: int, tables: int) -> Iterator[Op]:
        """The update of the rows that were looked up: equal indices are brought together first (`coalesce`)."""
        vectors, indices = batch * tables * self.width, batch * tables
        if self.activation != WIDE:
            yield Op("to single", "cast", 0.0, self.activation * vectors, WIDE * vectors, family="copy")
            yield Op("unscale", "mul", 1.0 * vectors, WIDE * vectors, WIDE * vectors)
        sort = 2.0 * SORT_PASSES * INDEX * indices
        yield Op("sort", "sort", 0.0, sort, sort, family="reduction")
        yield Op("coalesce", "sum", 1.0 * vectors, WIDE * vectors, WIDE * vectors, family="reduction")
        yield Op("add to rows", "index_add", 2.0 * vectors, 2.0 * WIDE * vectors, WIDE * vectors, family="copy")
