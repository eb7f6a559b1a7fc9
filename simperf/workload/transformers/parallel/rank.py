"""Passes of one rank of a transformer under tensor, sequence and expert parallelism."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from simperf.errors import InputError, Problem, nearest
from simperf.workload.layer_kernels import LayerKernels
from simperf.workload.op import Op
from simperf.workload.precision import SINGLE
from simperf.workload.routing import Routing
from simperf.workload.transformers.dimensions import Transformer
from simperf.workload.transformers.flops import RECOMPUTATIONS, Recomputation
from simperf.workload.transformers.parallel.adam import AdamUpdate
from simperf.workload.transformers.parallel.block import Block
from simperf.workload.transformers.parallel.branches import unplayed_beside
from simperf.workload.transformers.parallel.casts import cast_kernels, turned
from simperf.workload.transformers.parallel.ends import Embedding, Head
from simperf.workload.transformers.parallel.linear import gradient_width
from simperf.workload.transformers.parallel.multi_token import ahead_passes
from simperf.workload.transformers.parallel.operations import each
from simperf.workload.transformers.parallel.parts import parts_without_effect
from simperf.workload.transformers.parallel.precision import RankPrecision
from simperf.workload.transformers.parallel.sizes import ContextExchange, RankSizes
from simperf.workload.transformers.passes import Item, LayerPasses, Sync
from simperf.workload.tuning import Trained

__all__ = ["RankPasses", "Spread", "rank_passes"]


@dataclass(frozen=True, slots=True)
class RankPasses:
    """The passes of one rank, and what it does with gradients and weights.

    Parameters
    ----------
    embedding, block, head : LayerPasses
    dense : LayerPasses or None
        A block without experts, of models whose first ones have none.
    windowed : LayerPasses or None
        A block whose attention looks back at some tokens only.
    message_nbytes : float
        what a stage sends to the next for a micro-batch, and gets back as its gradient [B]
    received : tuple of Item
        What a rank does with such a message before it computes.
    weight_width, gradient_width, state_width : float
        of an element: the weight; its gradient, added up over micro-batches; what the optimizer keeps, with a copy of
        the weight in fp32 where weights are narrower [B]
    tied : bool
        Whether the stage of the head has the embedding's weights, for the head or for multi-token prediction: the
        stages that have one of both add their gradients up.
    sizes : RankSizes
        What all of this is made of.
    updates : str
        How Adam updates weights, as `simperf.workload.layer_kernels.LayerKernels` has it.
    late : bool
        Whether gradients of all layers are added up behind the whole backward pass.
    ahead : tuple of LayerPasses
        A depth of multi-token prediction, between the last block and the head.
    """

    embedding: LayerPasses
    block: LayerPasses
    head: LayerPasses
    message_nbytes: float
    received: tuple[Item, ...]
    weight_width: float
    gradient_width: float
    state_width: float
    tied: bool
    sizes: RankSizes
    updates: str = "fused"
    late: bool = False
    dense: LayerPasses | None = None
    windowed: LayerPasses | None = None
    ahead: tuple[LayerPasses, ...] = ()

    def numbered(self, number: int) -> LayerPasses:
        """Passes of a block of the model, counted from 0."""
        if self.dense is not None and number < self.sizes.model.dense_layers:
            return self.dense
        windowed = self.windowed is not None and self.sizes.model.is_windowed(number)
        return self.windowed if windowed and self.windowed is not None else self.block

    @property
    def tied_nbytes(self) -> float:
        """Gradient that the first and the last of several stages add up [B]; 0 if they share no weights."""
        trained = self.tied and not self.sizes.frozen
        return self.gradient_width * self.sizes.vocabulary * self.sizes.hidden if trained else 0.0

    def replicated_gradients(self, layers: Iterable[LayerPasses]) -> tuple[Item, ...]:
        """The sum over tensor-parallel ranks of gradients of weights that each of them has, in one all-reduce.

        With sequence parallelism each rank knows these gradients of its own tokens only (Megatron-Core,
        finalize_model_grads.py); without, of all. Of adapters each rank knows a part.

        Parameters
        ----------
        layers : iterable of LayerPasses
            Of the stage.
        """
        if not (self.sizes.sequence_parallel or self.sizes.frozen):
            return ()
        elements = sum(one.elements for layer in layers for one in layer.replicated)
        if not elements:
            return ()
        width = self.gradient_width
        op = each("copy", elements, flops=0.0, read=width, written=width, dtype="fp32", family="copy")
        nbytes = width * elements
        return (
            replace(op, name="replicated.flatten"),
            Sync("all-reduce", "tp", nbytes, "replicated"),
            replace(op, name="replicated.unflatten"),
        )

    def clear_gradients(self, elements: int) -> Op:
        """Zeros in the buffer of so many gradients, before a step."""
        op = each("fill", elements, flops=0.0, read=0.0, written=self.gradient_width, dtype="fp32")
        return replace(op, name="gradients.clear")

    def cast_weights(self, layers: Iterable[LayerPasses]) -> tuple[Op, ...]:
        """Casts of the weights of layers, before the first pass of a step; none if each pass has its own.

        Weights that were gathered narrow come as rows: columns are made of them, where the units need both.

        Parameters
        ----------
        layers : iterable of LayerPasses
            Of the stage.
        """
        recipe = self.sizes.recipe
        if recipe is None or recipe.weights not in ("step", "gathered"):
            return ()
        matrices = {
            f"weights.{number}.{matrix}": elements
            for number, layer in enumerate(layers)
            for matrix, elements in enumerate((*layer.scaled, *layer.scaled_experts))
        }
        if recipe.weights == "gathered":
            return tuple(turned(recipe, size, name) for name, size in matrices.items() if recipe.turns)
        dtype, copies = self.sizes.precision, recipe.copies
        return tuple(
            op for name, size in matrices.items() for op in cast_kernels(recipe, size, name, dtype, copies=copies)
        )

    @property
    def cast_width(self) -> float:
        """Copies that stay of a weight that a recipe casts, less the weight itself if it comes narrow [B]."""
        recipe = self.sizes.recipe
        if recipe is None or recipe.weights not in ("step", "gathered", "frozen"):
            return 0.0
        return recipe.copies * recipe.width - (self.weight_width if recipe.weights == "gathered" else 0.0)

    @property
    def gathered_width(self) -> float:
        """Bytes of a weight that is gathered as narrow as its products are [B]; 0 if it is not."""
        recipe = self.sizes.recipe
        return recipe.width if recipe is not None and recipe.weights.startswith("gathered") else 0.0

    def clipping(self, elements: int) -> tuple[Item, ...]:
        """The sum of squares of so many gradients that this rank owns: its part of their norm.

        Gradients are scaled if the norm is too large, which it rarely is: that is not counted.
        """
        width = self.gradient_width
        total = each("norm", elements, flops=2.0, read=width, written=0.0, dtype="fp32", family="reduction")
        return (replace(total, name="clip.norm"),)

    @property
    def adam(self) -> AdamUpdate:
        """The update of its weights."""
        sizes = self.sizes
        widths = self.weight_width, self.gradient_width, self.state_width
        return AdamUpdate(self.updates, *widths, sizes.precision, sizes.recipe)


@dataclass(frozen=True, slots=True)
class Spread:
    """The spread of experts and sequences over ranks, and of tokens over experts, as one rank sees it.

    Parameters
    ----------
    ep, etp, routing, place, cp, context_exchange, gates
        As of `RankSizes`.
    """

    ep: int = 1
    etp: int = 0
    routing: Routing = field(default_factory=Routing)
    place: int = 0
    cp: int = 1
    context_exchange: ContextExchange = "ring"
    gates: bool = False


def rank_passes(
    model: Transformer,
    kernels: LayerKernels,
    *,
    tp: int = 1,
    sequence_parallel: bool = False,
    microbatch: int = 1,
    recompute: Recomputation = "none",
    precision: str | RankPrecision = "bf16",
    scattered: bool = False,
    spread: Spread | None = None,
    trained: Trained | None = None,
) -> RankPasses:
    """Passes of one of `tp` ranks of a model, the same on each.

    Parameters
    ----------
    model : Transformer
    kernels : LayerKernels
        Of the software stack.
    tp : int
        Tensor parallelism: ranks that share each matrix.
    sequence_parallel : bool
        Whether they share the tokens between the matrices.
    microbatch : int
        Sequences.
    recompute : str
        What the backward pass computes again: nothing, the inside of attention (``"selective"``), or each layer from
        its input (``"full"``).
    precision : str or RankPrecision
        Of weights and activations; with a type of its own, the recipe of products in another way than `kernels` says.
    scattered : bool
        Whether each rank sends its part of a message to the next stage, where they gather it. With sequence parallelism
        each rank has a part only.
    spread : Spread, optional
        Of experts and sequences over ranks, and of tokens over experts; each rank has all of them by default.
    trained : Trained, optional
        What of the model is trained, on what, and where its gradients are; by default all weights, on sequences of one
        document each, and gradients are added to those of the micro-batches before.

    Raises
    ------
    InputError
        All that does not divide, an unknown recomputation, and models and kernels that are not yet simulated with a
        layout.

    Examples
    --------
    >>> small = Transformer(layers=2, hidden=64, heads=4, vocabulary=1024, sequence=16)
    >>> passes = rank_passes(small, LayerKernels(norm="fused"), tp=2)
    >>> [item.label for item in passes.block.forward if isinstance(item, Sync)]
    ['projection.reduce', 'down.reduce']
    >>> passes.block.parameters * 2 - 2 * 64 == sum(one.elements for one in small.block_weights("block"))
    True
    """
    problems = []
    if recompute not in RECOMPUTATIONS:
        message = f"no such recomputation{nearest(str(recompute), RECOMPUTATIONS)}"
        expected = ", ".join(RECOMPUTATIONS)
        problems.append(Problem(message, key="recompute", value=str(recompute), expected=expected))
    if not kernels.fuses_norm(model.norm) and (model.norm != "rms" or model.qk_norm or model.kv_rank):
        what = "normalization of queries and keys" if model.norm == "rms" else "layer normalization"
        message = f"{what} of several kernels is not yet simulated with a layout"
        problems.append(Problem(message, key="norm", value=kernels.norm, expected='"fused"'))
    if recompute == "selective-op" and (
        model.experts or model.kv_rank or kernels.attention != "flash" or model.dropout
    ):
        message = "is simulated for dense models with attention in one kernel and without dropout"
        problems.append(Problem(message, key="recompute", value=recompute, expected="none, selective or full"))
    if kernels.gathered_inputs == "kept" and (model.experts or model.kv_rank):
        message = "is simulated for dense models"
        problems.append(Problem(message, key="gathered_inputs", value="kept", expected="again"))
    problems += parts_without_effect(
        kernels,
        tp=tp,
        sequence_parallel=sequence_parallel,
        tokens=microbatch * model.sequence // max(1, (spread or Spread()).cp),
    )
    numbers = precision if isinstance(precision, RankPrecision) else RankPrecision.of(precision, kernels)
    problems += numbers.problems(kernels, recompute)
    frozen = trained is not None and bool(trained.adapters)
    problems += unplayed_beside(model, recompute, narrow=numbers.recipe is not None, frozen=frozen)
    if scattered and (sequence_parallel or tp == 1):
        message = "has no effect: each rank has " + ("a part of a message only" if sequence_parallel else "all of it")
        problems.append(Problem(message, key="scattered", value="true", expected="false"))
    if problems:
        raise InputError(problems)
    over = spread or Spread()
    sizes = RankSizes(
        model=model,
        tp=tp,
        sequence_parallel=sequence_parallel,
        microbatch=microbatch,
        precision=numbers.weights,
        cp=over.cp,
        context_exchange=over.context_exchange,
        ep=over.ep,
        etp=over.etp,
        routing=over.routing,
        place=over.place,
        gates=over.gates,
        trained=trained or Trained(),
        recipe=numbers.recipe,
    )
    if (sizes.trained.documents or model.window) and kernels.attention != "flash":
        message = "scores of the whole sequence are in memory, whatever is masked"
        raise InputError(Problem(message, key="attention", value=kernels.attention, expected="flash"))
    if (model.kv_rank or over.cp > 1) and kernels.attention != "flash":
        message = "latent attention is one kernel" if over.cp == 1 else "such ranks share sequences in no way"
        raise InputError(Problem(message, key="attention", value=kernels.attention, expected="flash"))
    gathers = (Sync("all-gather", "tp", sizes.whole, "message.gather"),) if scattered else ()
    block = Block(sizes, kernels, recompute).passes()
    return RankPasses(
        embedding=Embedding(sizes, kernels).passes(),
        block=block,
        head=Head(sizes, kernels).passes(),
        message_nbytes=sizes.whole / tp if scattered else sizes.local,
        received=gathers,
        weight_width=sizes.width,
        gradient_width=gradient_width(kernels, sizes),
        state_width=2 * sizes.width if numbers.pure else (2 if numbers.weights == "fp32" else 3) * SINGLE,
        tied=model.tied or model.mtp > 0,
        sizes=sizes,
        updates=kernels.update,
        late=kernels.gradient_accumulation == "behind",
        dense=Block(sizes, kernels, recompute, dense=True).passes() if model.dense_layers else None,
        windowed=Block(sizes, kernels, recompute, window=model.window).passes() if model.window else None,
        ahead=ahead_passes(sizes, kernels, block) if model.mtp else (),
    )
