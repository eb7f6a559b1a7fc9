"""Prediction of tokens further ahead on one rank: what joins the last states and the next tokens, before a block.

DeepSeek-AI, DeepSeek-V3 Technical Report, 2024, section 2.2: each depth normalises the states of the depth before and
the embedding of the next tokens, multiplies both together with one matrix, and has a block, a norm, and the head and
the loss of the model again. The order is that of Megatron-Core (NVIDIA/Megatron-LM,
megatron/core/transformer/multi_token_prediction.py): all of it is on the stage of the head, which has the embedding's
weights, too; tensor-parallel ranks share the matrix by its outputs, and each gathers what it makes.

Not modelled: the scale of its loss, and tokens that ranks which share sequences shift to each other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from simperf.workload.layer_kernels import LayerKernels
from simperf.workload.transformers.parallel.ends import TOKEN, Embedding, Head
from simperf.workload.transformers.parallel.linear import Linear
from simperf.workload.transformers.parallel.norm_step import NormStep
from simperf.workload.transformers.parallel.operations import each
from simperf.workload.transformers.parallel.record import PassRecord, recorded_passes
from simperf.workload.transformers.parallel.sizes import RankSizes
from simperf.workload.transformers.passes import Kept, LayerPasses

__all__ = ["ahead_passes"]


def ahead_passes(sizes: RankSizes, kernels: LayerKernels, block: LayerPasses) -> tuple[LayerPasses, ...]:
    """One depth of multi-token prediction, in the order of the forward pass.

    Parameters
    ----------
    sizes : RankSizes
    kernels : LayerKernels
    block : LayerPasses
        A block of the model.

    Returns
    -------
    tuple of LayerPasses
        What joins states and tokens, the block, and the head. The gradient of the states that the head before has made
        is held through their backward passes.
    """
    found = _Join(sizes, kernels).passes(), block, Head(sizes, kernels, ahead=True).passes()
    join, *others = found
    return (join, *(_beside(one, sizes.local) for one in others))


def _beside(one: LayerPasses, nbytes: float) -> LayerPasses:
    """Passes beside which so much is held while gradients of inputs are made [B]."""
    whole, inputs = one.temporary_backward + nbytes, one.temporary_inputs + nbytes
    return replace(one, temporary_backward=whole, temporary_inputs=inputs)


@dataclass(frozen=True, slots=True)
class _Join:
    """States of the depth before and the next tokens, normalised and multiplied with one matrix.

    Parameters
    ----------
    sizes : RankSizes
    kernels : LayerKernels
    """

    sizes: RankSizes
    kernels: LayerKernels

    def passes(self) -> LayerPasses:
        """Its passes; the states are kept by the head that has read them."""
        sizes, (state, token) = self.sizes, self._norms
        forward = PassRecord(held=[Kept("tokens", TOKEN * sizes.tokens), Kept("state", 0.0)])
        self._forward(forward)
        embedded = NormStep("embed_norm", sizes, self.kernels).kept[1:]
        inside = ("token", "embedded", *embedded, "mask", "joined", "join.gathered", *state.kept[1:], *token.kept[1:])
        kept = forward.kept(("tokens", "state", *inside))
        backward = PassRecord(held=kept)
        for name in ("output.gradient", "head.gradient"):
            backward.hold(name, sizes.local)
        self._backward(backward)
        backward.end()
        assert len(backward.tensors) == 2, backward.tensors  # tokens, and the gradient of the states
        own = [one for one in sizes.model.end_weights() if one.name.startswith("mtp.0.") and ".norm." not in one.name]
        shared = [one for one in sizes.model.end_weights() if one.name == "embed.weight"]
        return LayerPasses(
            name="ahead.join",
            **recorded_passes(forward, backward, kept),
            weights=tuple(sizes.weight(one) for one in (*shared, *own)),
            replicated=tuple(one for one in own if sizes.is_whole(one)),
            placeholders=self._matrix.placeholders,
            scaled=() if self._matrix.casts is None else (self._matrix.casts.weights,),
        )

    @property
    def _norms(self) -> tuple[NormStep, NormStep]:
        return NormStep("norm_state", self.sizes, self.kernels), NormStep("norm_token", self.sizes, self.kernels)

    @property
    def _matrix(self) -> Linear:
        sizes = self.sizes
        return Linear("join", 2 * sizes.hidden, sizes.hidden // sizes.tp, sizes, self.kernels)

    def _forward(self, record: PassRecord) -> None:
        """Operations from ``state`` and ``tokens`` to what the block reads."""
        sizes, (state, token) = self.sizes, self._norms
        shift = each("copy", sizes.tokens, flops=0.0, read=TOKEN, written=TOKEN, dtype="fp32", family="copy")
        record.op(shift, "tokens.shift")
        record.rename(Embedding(sizes, self.kernels).forward(record), "token")
        parts = token.forward(record), state.forward(record)
        self._copy(record, "join.parts", 2 * sizes.local, "joined", frees=parts)
        made = self._matrix.forward(record, "joined")
        if sizes.tp > 1:
            record.sync("all-gather", sizes.whole, "join.output.gather")
            record.hold("join.whole", sizes.whole)
            record.free(made)
        if sizes.sequence_parallel:
            self._copy(record, "join.split", sizes.local, "join.local", frees=("join.whole",))

    def _backward(self, record: PassRecord) -> None:
        """Operations from the gradient of what the block reads to that of ``state``, with that of the head before."""
        sizes, (state, token), gradient = self.sizes, self._norms, "output.gradient"
        if sizes.sequence_parallel:
            record.sync("all-gather", sizes.whole, "join.split.gather")
            record.hold("split.gradient", sizes.whole)
            record.free(gradient)
            gradient = "split.gradient"
        if sizes.tp > 1:
            self._copy(record, "join.slice", sizes.whole / sizes.tp, "slice.gradient", frees=(gradient,))
            gradient = "slice.gradient"
        found = self._matrix.backward(record, gradient, "joined")
        self._copy(record, "join.parts.back", 2 * sizes.local, "state.part", frees=(found,))
        record.free("state.part")
        for name in ("state.part", "token.part"):
            record.hold(name, sizes.local)
        Embedding(sizes, self.kernels).backward(record, token.backward(record, "token.part", "token"))
        state.backward(record, "state.part", "state", plus="head.gradient")

    def _copy(self, record: PassRecord, name: str, nbytes: float, made: str, frees: tuple[str, ...]) -> None:
        """A kernel that copies so many bytes."""
        width, dtype = self.sizes.width, self.sizes.precision
        op = each("copy", nbytes / width, flops=0.0, read=width, written=width, dtype=dtype, family="copy")
        record.op(op, name, makes=[Kept(made, nbytes)], frees=frees)
