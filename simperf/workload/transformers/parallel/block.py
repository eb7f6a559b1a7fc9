"""The passes of a block on one rank."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from simperf.workload.layer_kernels import LayerKernels
from simperf.workload.precision import SINGLE
from simperf.workload.transformers import arithmetic
from simperf.workload.transformers.flops import Recomputation
from simperf.workload.transformers.parallel.attention import Attention
from simperf.workload.transformers.parallel.branches import FirstMatrices, LastMatrices
from simperf.workload.transformers.parallel.experts import Mixture
from simperf.workload.transformers.parallel.latent import LatentAttention
from simperf.workload.transformers.parallel.linear import Linear, frozen_weights
from simperf.workload.transformers.parallel.network import FeedForward
from simperf.workload.transformers.parallel.norm_step import NormStep
from simperf.workload.transformers.parallel.operations import each
from simperf.workload.transformers.parallel.record import PassRecord, recorded_passes
from simperf.workload.transformers.parallel.sizes import RankSizes
from simperf.workload.transformers.passes import Kept, LayerPasses

__all__ = ["Block"]


@dataclass(frozen=True, slots=True)
class Block:
    """A block: attention and feed-forward network, each normalised before and added to what it reads.

    Where they stand side by side (`Transformer.parallel_block`), both read one normalised input, and one sum is added.

    Parameters
    ----------
    sizes : RankSizes
    kernels : LayerKernels
    recompute : str
        One of `simperf.workload.transformers.flops.RECOMPUTATIONS`.
    dense : bool
        Whether it has no experts in a model that has.
    window : int
        Tokens that its attention looks back at; 0 for all.
    """

    sizes: RankSizes
    kernels: LayerKernels
    recompute: Recomputation = "none"
    dense: bool = False
    window: int = 0

    def passes(self) -> LayerPasses:
        """Passes of the block."""
        sizes = self.sizes
        forward = PassRecord(held=[Kept("input", sizes.local)])
        self._forward(forward)
        kept = self._saved if self.recompute == "selective-op" else forward.kept(self._kept)
        backward = PassRecord(held=kept)
        gradient = "output.gradient"
        backward.hold(gradient, sizes.local)
        if self.recompute in ("full", "selective-op"):
            backward.free(*(one.name for one in kept if one.name != "input"))
            backward.again("again.", self._shares if self.recompute == "selective-op" else None)
            self._forward_again(backward)
            backward.again("")
        self._backward(backward, gradient)
        backward.end()
        assert len(backward.tensors) == 1, backward.tensors  # the gradient of its input
        every = tuple(sizes.model.block_weights("block", dense=self.dense))
        shared = tuple(one for one in every if ".experts." not in one.name)
        experts = network.weights("block") if isinstance(network := self._network, Mixture) else ()
        weights = (*(sizes.weight(one) for one in shared), *experts)
        whole = tuple(one for one in shared if sizes.is_whole(one))
        adapters = [one for matrix in self._matrices for one in matrix.adapters]
        return LayerPasses(
            name="dense block" if self.dense else "window block" if self.window else "block",
            **recorded_passes(forward, backward, kept),
            weights=tuple(own for one in adapters for own in one.weights) if sizes.frozen else weights,
            replicated=tuple(own for one in adapters for own in one.whole) if sizes.frozen else whole,
            placeholders=self._placeholders,
            experts=experts,
            scaled=self._scaled,
            scaled_experts=network.scaled_experts if isinstance(network, Mixture) else (),
            frozen=frozen_weights(weights, sizes, matrices=True) if sizes.frozen else (),
        )

    @property
    def _matrices(self) -> tuple[Linear, ...]:
        """Parts of a block without experts."""
        network = self._network
        found = network.matrices if isinstance(network, FeedForward) else ()
        return (*self._attention.matrices, self._projection, *found)

    @property
    def _attention(self) -> Attention | LatentAttention:
        if self.sizes.model.kv_rank:
            return LatentAttention(self.sizes, self.kernels)
        return Attention(self.sizes, self.kernels, self.window)

    @property
    def _norms(self) -> tuple[NormStep, NormStep]:
        return NormStep("norm1", self.sizes, self.kernels), NormStep("norm2", self.sizes, self.kernels)

    @property
    def _network(self) -> FeedForward | Mixture:
        """The network between its norm and its addition to the residual."""
        if self.sizes.model.experts and not self.dense:
            return Mixture(self.sizes, self.kernels)
        return FeedForward(self.sizes, self.kernels, self.sizes.ffn)

    @property
    def _projection(self) -> Linear:
        """The matrix of attention's output."""
        sizes = self.sizes
        # attention in one kernel reads its result again, backward
        shared = self.kernels.attention == "flash"
        return Linear("projection", sizes.attended, sizes.hidden, sizes, self.kernels, row=True, shared=shared)

    @property
    def _kept(self) -> tuple[str, ...]:
        """Tensors that the backward pass reads, in the order in which they are made."""
        if self.recompute == "full":
            return ("input",)
        first, second = self._norms
        inside = [one for one in self._attention.kept if self.recompute == "none" or one not in self._attention.core]
        if self.sizes.model.parallel_block:
            mask = ("residual1.mask",) * self.sizes.model.dropout
            return ("input", *first.kept, *inside, *self._network.kept, *mask, "branches.gathered")
        unread = self._unread if self.sizes.frozen else ()
        masks = ("residual1.mask", "residual2.mask") if self.sizes.model.dropout else ("", "")
        network = [*second.kept, *self._network.kept, masks[1]]
        gathered = ("qkv.gathered", "up.gathered", *self._projection.narrow)
        inner = [adapter.kept for matrix in self._matrices for adapter in matrix.adapters]
        found = ("input", *first.kept, *inside, masks[0], "middle", *network, *gathered, *inner)
        return tuple(one for one in found if one and one not in unread)

    @property
    def _unread(self) -> tuple[str, ...]:
        """Inputs of frozen matrices that are gone in the backward pass."""
        first, second = self._norms
        qkv, projection, up, down = self._matrices
        attended = "" if self.kernels.attention == "flash" else "attention.output"
        inputs = (qkv, first.kept[0]), (projection, attended), (up, second.kept[0]), (down, "activation.output")
        return tuple(x for matrix, x in inputs if not matrix.holds_input)

    @property
    def _scaled(self) -> tuple[int, ...]:
        matrices = [*self._attention.matrices, self._projection]
        return (*(one.casts.weights for one in matrices if one.casts is not None), *self._network.scaled)

    @property
    def _placeholders(self) -> tuple[Kept, ...]:
        matrices = [*self._attention.matrices, self._projection]
        found = [one for matrix in matrices for one in matrix.placeholders] + list(self._network.placeholders)
        return tuple(dict.fromkeys(found))

    def _forward(self, record: PassRecord) -> None:
        """Operations from ``input`` to ``output``."""
        first, second = self._norms
        if self.sizes.model.parallel_block:
            self._beside(record, first.forward(record))
            self._residual(record, 1, self._last.forward(record), "output")
            return
        self._attention.forward(record, first.forward(record))
        self._residual(record, 1, self._projection.forward(record, "attention.output"), "middle")
        self._residual(record, 2, self._network.forward(record, second.forward(record)), "output")

    def _beside(self, record: PassRecord, x: str) -> None:
        """Operations from the norm's output to those of attention and of the activation, side by side."""
        attention, network = self._attention, self._network
        assert isinstance(attention, Attention)
        assert isinstance(network, FeedForward)
        qkv, _ = self._first.forward(record, x)
        attention.attend(record, qkv)
        network.activation.forward(record)

    @property
    def _first(self) -> FirstMatrices:
        network = self._network
        assert isinstance(network, FeedForward)
        return FirstMatrices(self.sizes, self.kernels, (*self._attention.matrices, network.matrices[0]))

    @property
    def _last(self) -> LastMatrices:
        network = self._network
        assert isinstance(network, FeedForward)
        return LastMatrices(self.sizes, self.kernels, (self._projection, network.matrices[1]))

    def _forward_again(self, record: PassRecord) -> None:
        """Operations from ``input`` to what the backward pass reads."""
        network = self._network
        stops = self.kernels.recomputed == "needed" or self.recompute == "selective-op"
        if not stops or not isinstance(network, FeedForward) or self.sizes.model.dropout:
            self._forward(record)
            record.free("output")
            return
        first, second = self._norms
        if self.sizes.model.parallel_block:
            self._beside(record, first.forward(record))
            return
        self._attention.forward(record, first.forward(record))
        self._residual(record, 1, self._projection.forward(record, "attention.output"), "middle")
        network.again(record, second.forward(record))

    @property
    def _shares(self) -> dict[str, float]:
        """Parts of operations and collectives that selective recomputation by operation does again.

        Attention's result and that of every other matrix product are kept, and those of reductions over tensor-parallel
        ranks (pytorch/torchtitan at 0596be3a, torchtitan/models/llama/parallelize_llama.py, `_save_list`). The matrices
        are counted one by one: those of queries and values are kept, of keys and the output not; with a gate its
        product and the last one, without one the first of the feed-forward network.
        """
        sizes = self.sizes
        kept = {"attention": 0.0, "qkv.0": 0.0, "qkv.2": 0.0, "qkv": sizes.keys / (sizes.queries + 2 * sizes.keys)}
        up = {"up.0": 0.0, "up": 0.5} if sizes.model.gated else {"up": 0.0}
        return kept | up | ({"projection": 0.0, "projection.reduce": 0.0} if sizes.tp > 1 else {})

    @property
    def _saved(self) -> tuple[Kept, ...]:
        """Tensors that it keeps beside its input."""
        sizes = self.sizes
        each, gated = sizes.width * sizes.tokens, sizes.model.gated
        reduced = [Kept("saved.projection", sizes.local)] if sizes.tp > 1 else []
        return (
            Kept("input", sizes.local),
            Kept("saved.queries", each * sizes.queries),
            Kept("saved.values", each * sizes.keys),
            Kept("saved.attention", each * sizes.queries),
            Kept("saved.statistics", SINGLE * sizes.microbatch * sizes.heads * sizes.model.sequence),
            *reduced,
            Kept("saved.up", each * sizes.ffn),
            *([Kept("saved.down", sizes.local if sizes.tp > 1 else sizes.whole)] if gated or sizes.tp > 1 else []),
        )

    def _backward(self, record: PassRecord, gradient: str) -> None:
        """Operations from the gradient of ``output`` to that of ``input``."""
        if self.sizes.model.parallel_block:
            self._beside_back(record, gradient)
            return
        first, second = self._norms
        network, projection = self._network, self._projection
        inside = self._residual_back(record, 2, gradient, network.last)
        found = network.backward(record, inside, second.kept[0], last=inside != gradient)
        gradient = second.backward(record, found, "middle", plus=gradient)
        inside = self._residual_back(record, 1, gradient, projection)
        flash = self.kernels.attention == "flash"  # which reads its result again
        last = inside != gradient
        attended = projection.backward(record, inside, "attention.output", last=last, frees=not flash)
        if self.recompute == "selective":
            record.again("again.")
            self._attention.core_again(record)
            record.again("")
        found = self._attention.backward(record, attended, first.kept[0])
        first.backward(record, found, "input", plus=gradient)

    def _beside_back(self, record: PassRecord, gradient: str) -> None:
        """The same where attention and network stand side by side."""
        attention, network, (norm, _) = self._attention, self._network, self._norms
        assert isinstance(attention, Attention)
        assert isinstance(network, FeedForward)
        inside = self._residual_back(record, 1, gradient, self._projection, network.last)
        flash = self.kernels.attention == "flash"  # which reads its result again
        inputs = "attention.output", "activation.output"
        last, frees = inside != gradient, inputs[flash:]
        attended, inner = self._last.backward(record, inside, inputs, last=last, frees=frees)
        if self.recompute == "selective":
            record.again("again.")
            attention.core_again(record)
            record.again("")
        gradients = (
            attention.attend_back(record, attended),
            network.activation.backward(record, inner, network.matrices[0]),
        )
        found = self._first.backward(record, gradients, norm.kept[0])
        norm.backward(record, found, "input", plus=gradient)

    def _residual(self, record: PassRecord, number: int, x: str, makes: str) -> None:
        """Bias and dropout of a branch, and its addition to the residual."""
        sizes, width, dropout = self.sizes, self.sizes.width, self.sizes.model.dropout
        n = sizes.local_tokens * sizes.hidden
        made = [Kept(makes, sizes.local), *([Kept(f"residual{number}.mask", float(n))] if dropout else [])]
        steps = list(self._steps())
        for step, (kind, flops, read, written) in enumerate(steps):
            op = each(kind, n, flops=flops, read=read * width, written=written, dtype=sizes.precision)
            last = step == len(steps) - 1
            record.op(op, f"residual{number}.{kind}", makes=made if last else (), frees=(x,) if last else ())

    def _steps(self) -> Iterator[tuple[str, float, float, float]]:
        """Kernels of a residual: kind, FLOP, arrays read, and bytes written of an element."""
        model, width = self.sizes.model, self.sizes.width
        flops = 1.0 + model.bias + arithmetic.DROP * model.dropout
        if self.kernels.residual == "fused":
            yield "bias_dropout_add", flops, 2.0, width + model.dropout
            return
        if model.bias:
            yield "bias", 1.0, 1.0, width
        if model.dropout:
            yield "dropout", arithmetic.DROP, 1.0, width + 1
        yield "add", 1.0, 2.0, width

    def _residual_back(self, record: PassRecord, number: int, gradient: str, *matrices: Linear | None) -> str:
        """Gradient of a branch from that of the sum, and of the biases of its last matrices; its name."""
        sizes, width, found = self.sizes, self.sizes.width, f"residual{number}.gradient"
        if sizes.model.dropout:
            n = sizes.local_tokens * sizes.hidden
            op = each("dropout_backward", n, flops=1.0, read=width + 1, written=width, dtype=sizes.precision)
            record.op(op, found, makes=[Kept(found, sizes.local)], frees=(f"residual{number}.mask",))
        else:
            found = gradient
        for matrix in matrices if sizes.model.bias else ():
            if matrix is not None:
                matrix.bias_gradient(record, sizes.local_tokens, found)
        return found
