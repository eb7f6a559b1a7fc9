"""Passes of one rank over a transformer, layer by layer: operations, and collectives between them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from simperf.memory import LayerTensors
from simperf.workload.op import Op
from simperf.workload.transformers.dimensions import Weight

__all__ = ["Await", "Item", "Kept", "LayerPasses", "Sync"]

CollectiveName = Literal[
    "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "dispatch", "combine", "send-recv", "copy"
]


@dataclass(frozen=True, slots=True)
class Sync:
    """A collective that a layer does with the ranks along one dimension of its layout.

    Parameters
    ----------
    name : str
        ``"all-reduce"``, ``"all-gather"``, ``"reduce-scatter"``, ``"all-to-all"``, that of unequal parts to experts
        (``"dispatch"``) or back from them (``"combine"``), or a send to the next rank of a ring (``"send-recv"``),
        which is one of copy engines (``"copy"``).
    dimension : str
        ``"tp"``, ``"cp"``, ``"ep"``, or ``"etp"``: tensor parallelism of the experts.
    nbytes : float
        payload as nccl-tests counts it: of an all-gather what is gathered, of a reduce-scatter what is reduced, of an
        all-to-all what a rank sends, with what stays there; of one of unequal parts the mean [B]
    label : str
        Unique in its pass.
    waits : bool
        Whether what follows reads its result. If not, it runs beside what follows, up to the `Await` of its label.
    """

    name: CollectiveName
    dimension: str
    nbytes: float
    label: str
    waits: bool = True


class Await(NamedTuple):
    """Here the result of a `Sync` is read that did not wait.

    Parameters
    ----------
    label : str
        Of the `Sync`.
    """

    label: str


#: what a pass consists of, in the order in which it is launched
Item: TypeAlias = Op | Sync | Await


class Kept(NamedTuple):
    """A tensor that the forward pass keeps for the backward pass.

    Parameters
    ----------
    name : str
        The operation that makes it, and what it is.
    nbytes : float
        Size on this rank [B].
    """

    name: str
    nbytes: float


@dataclass(frozen=True, slots=True)
class LayerPasses:
    """The passes of a block, of the embedding, or of the head with its loss, for one micro-batch on one rank.

    Parameters
    ----------
    name : str
        ``"embedding"``, ``"block"``, ``"head"``, or another kind of block.
    forward : tuple of Item
        The forward pass.
    backward : tuple of Item
        The whole backward pass, with what is computed again first.
    input_gradients, weight_gradients : tuple of Item
        The same in two passes, where a schedule has them apart: together they have the operations of `backward`.
    kept : tuple of Kept
        From the forward pass to the end of the backward pass.
    temporary_forward, temporary_backward : float
        Most that tensors which live inside of the pass hold at a time, beside `kept` [B].
    weights : tuple of Weight
        Weights of this rank that are trained; their gradients are ready at the end of the backward pass.
    replicated : tuple of Weight
        Those of `weights` that every tensor-parallel rank has as a whole.
    placeholders : tuple of Kept
        Tensors by shape that the first backward pass allocates and that stay: all layers of a stage share those of one
        name.
    experts : tuple of Weight
        Those of `weights` that belong to experts: their copies are on fewer ranks.
    scaled : tuple of int
        Weights of each matrix whose operands a recipe casts to a narrower precision, but those of experts.
    scaled_experts : tuple of int
        The same of experts, those of one rank together.
    left : tuple of Kept
        Where the backward pass is in two, what the first leaves for the second: inputs of products, and gradients of
        their outputs. All else that is kept goes with the first.
    temporary_inputs, temporary_weights : float
        Most that tensors which live inside of these two passes hold at a time, beside `kept` and `left` [B].
    frozen : tuple of Kept
        Weights of this rank that are not trained.
    tensors : LayerTensors, optional
        Lifetimes of its tensors, where its backward pass follows its forward pass at once.

    Attributes
    ----------
    parameters, of_experts : int
        Number of weights on this rank that are trained, and of those of experts.
    """

    name: str
    forward: tuple[Item, ...]
    backward: tuple[Item, ...]
    input_gradients: tuple[Item, ...]
    weight_gradients: tuple[Item, ...]
    kept: tuple[Kept, ...]
    temporary_forward: float
    temporary_backward: float
    weights: tuple[Weight, ...]
    replicated: tuple[Weight, ...] = ()
    placeholders: tuple[Kept, ...] = ()
    experts: tuple[Weight, ...] = ()
    scaled: tuple[int, ...] = ()
    scaled_experts: tuple[int, ...] = ()
    left: tuple[Kept, ...] = ()
    temporary_inputs: float = 0.0
    temporary_weights: float = 0.0
    frozen: tuple[Kept, ...] = ()
    tensors: LayerTensors | None = None
    parameters: int = field(init=False, repr=False, compare=False)
    of_experts: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameters", sum(one.elements for one in self.weights))
        object.__setattr__(self, "of_experts", sum(one.elements for one in self.experts))

    @property
    def is_block(self) -> bool:
        """Whether it is a block of the model, of any kind: not the embedding, the head, or what joins states ahead."""
        return self.name.endswith("block")

    @property
    def activations(self) -> float:
        """Memory of all that is kept [B]."""
        return sum(one.nbytes for one in self.kept)
