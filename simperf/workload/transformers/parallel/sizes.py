"""Sizes of what one tensor-parallel rank has of a transformer."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from simperf.errors import InputError, Problem, nearest_divisors
from simperf.workload.precision import element_size
from simperf.workload.product_recipe import ProductRecipe
from simperf.workload.routing import Routing
from simperf.workload.transformers.dimensions import Transformer, Weight
from simperf.workload.transformers.parallel.expert_sizes import ExpertSizes, expert_sizes
from simperf.workload.tuning import Trained

__all__ = ["RankSizes"]

#: Megatron pads the vocabulary to a multiple of this on every rank (NVIDIA/Megatron-LM, arguments.py:
#: make_vocab_size_divisible_by, 128 by default)
_VOCABULARY_MULTIPLE = 128
#: how ranks that share sequences exchange keys and values
ContextExchange: TypeAlias = Literal["ring", "all-gather", "all-to-all"]
#: precisions that weights and activations have
_PRECISIONS = ("bf16", "fp16", "fp32")
#: matrices whose input is divided; of all others the output is
_ROW = (".o.weight", ".down.weight")
#: weights that every rank has as a whole
_WHOLE = (
    *(".o.bias", ".down.bias", "norm1.", "norm2.", "_norm.", "position.", ".q_down.", ".kv_down.", ".router."),
    *(".norm_state.", ".norm_token.", ".norm."),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankSizes:
    """Sizes of one rank's part of a model for one micro-batch.

    Parameters
    ----------
    model : Transformer
    tp : int
        Ranks that share each matrix.
    sequence_parallel : bool
        Whether they share the tokens between the matrices, too (Korthikanti et al., "Reducing Activation Recomputation
        in Large Transformer Models", MLSys 2023).
    microbatch : int
        Sequences.
    precision : str
        Of weights and activations: ``"bf16"``, ``"fp16"`` or ``"fp32"``.
    cp : int
        Ranks that share each sequence.
    context_exchange : str
        How these exchange keys and values: ``"ring"``, ``"all-gather"`` or ``"all-to-all"``.
    ep, etp : int
        Ranks that the experts of a layer are spread over, and that share each of them; `etp` is 0 for `tp`.
    routing : Routing
        Of tokens to experts.
    place : int
        Of the rank among those that the experts are spread over.
    gates : bool
        Whether it stands for all of these, as the one whose experts get most rows.
    trained : Trained
        What of the model is trained, on what, and where its gradients are.
    recipe : ProductRecipe, optional
        Of the blocks' products, if they are in 8 or 4 bits.

    Raises
    ------
    InputError
        All that does not divide, and what is not simulated together.

    Examples
    --------
    >>> llama = Transformer(layers=32, hidden=4096, heads=32, ffn=11008, vocabulary=32000, sequence=4096)
    >>> sizes = RankSizes(model=llama, tp=4, sequence_parallel=True)
    >>> sizes.heads, sizes.ffn, sizes.local_tokens, sizes.vocabulary, sizes.padding
    (8, 2752, 1024, 8064, 256)
    """

    model: Transformer
    tp: int = 1
    sequence_parallel: bool = False
    microbatch: int = 1
    precision: str = "bf16"
    cp: int = 1
    context_exchange: ContextExchange = "ring"
    ep: int = 1
    etp: int = 0
    routing: Routing = field(default_factory=Routing)
    place: int = 0
    gates: bool = False
    trained: Trained = field(default_factory=Trained)
    recipe: ProductRecipe | None = None

    def __post_init__(self) -> None:
        problems = [
            Problem("a whole number, 1 or more, is expected", key=key, value=repr(value))
            for key in ("tp", "microbatch", "cp")
            if isinstance(value := getattr(self, key), bool) or not isinstance(value, int) or value < 1
        ]
        if self.precision not in _PRECISIONS:
            message = "weights and activations under a layout have no such precision"
            expected = ", ".join(_PRECISIONS)
            problems.append(Problem(message, key="precision", value=str(self.precision), expected=expected))
        if not problems:
            problems += [
                *self._indivisible(),
                *self._unshared(),
                *self._untunable(),
                *self._unscaled(),
                *self._unseen(),
            ]
        if self.model.experts and self.tp > 1 and not self.sequence_parallel:
            message = "tensor-parallel ranks would send the same tokens to the experts"
            problems.append(Problem(message, key="sequence_parallel", value="false", expected="true, or tp = 1"))
        if problems:
            raise InputError(problems)
        _ = self.experts  # refuses what cannot be spread

    def _indivisible(self) -> Iterator[Problem]:
        """Sizes that tensor parallelism does not divide."""
        model, tp = self.model, self.tp
        if self.sequence_parallel and tp == 1:
            message = "has no effect: there is one rank, which has all tokens"
            yield Problem(message, key="sequence_parallel", value="true", expected="false, or tp above 1")
        kv_heads = model.kv_heads or model.heads
        wholes = [("heads", model.heads)]
        if not model.experts or model.dense_layers:
            wholes.append(("ffn", model.ffn or 4 * model.hidden))
        if model.mtp:
            wholes.append(("hidden", model.hidden))
        if model.shared_experts:
            wholes.append(("shared_experts x expert_ffn", model.shared_experts * model.inner_width))
        if self.sequence_parallel:
            wholes.append(("sequence" if self.cp == 1 else "sequence / cp", self.context))
        if kv_heads >= tp:
            wholes.append(("kv_heads", kv_heads))
        elif tp % kv_heads:
            message = f"{tp} ranks do not share {kv_heads} key and value heads evenly"
            near = nearest_divisors(model.heads, kv_heads, where=lambda one: not (one % tp and tp % one))
            yield Problem(message, key="kv_heads", value=str(kv_heads), expected=" or ".join(map(str, near)))
        all_divided = math.gcd(*(whole for key, whole in wholes if key != "kv_heads"))
        near = nearest_divisors(all_divided, tp, where=lambda one: not (kv_heads % one and one % kv_heads))
        expected = " or ".join(f"tp = {one}" for one in near)
        for key, whole in wholes:
            if whole % tp:
                message = f"tp = {tp} does not divide {key} = {whole}"
                yield Problem(message, key="tp", value=str(tp), expected=expected)

    def _unscaled(self) -> Iterator[Problem]:
        """Sizes that the units of a recipe do not multiply."""
        recipe, model, tp = self.recipe, self.model, self.tp
        if recipe is None:
            return
        if self.precision not in ("bf16", "fp16"):
            message = f"products of {recipe.name} are of weights and activations in 16 bits"
            yield Problem(message, key="precision", value=self.precision, expected="bf16-master")
        dense = not model.experts or model.dense_layers
        for what, size in (
            ("hidden", model.hidden),
            ("tokens of a micro-batch on a rank", self.local_tokens),
            ("heads x head_width / tp", self.queries),
            ("ffn / tp", self.ffn if dense else 0),
            ("expert_ffn / etp", model.inner_width // (self.etp or tp) if model.experts else 0),
        ):
            if size % recipe.multiple:
                message = f"operands of {recipe.name} have a multiple of {recipe.multiple} each way: {what} are {size}"
                expected = f"a multiple of {recipe.multiple}, or product_precision = as-weights"
                yield Problem(message, key="product_precision", value=recipe.name, expected=expected)

    def _unshared(self) -> Iterator[Problem]:
        """Reasons for which ranks cannot share sequences."""
        if self.cp == 1:
            return
        sequence, key = self.model.sequence, "cp"
        if sequence % (chunks := 2 * self.cp):
            message = f"each of cp = {self.cp} ranks has two chunks of a sequence: {chunks} do not divide {sequence}"
            divisors = nearest_divisors(sequence, chunks)
            near = [f"cp = {one // 2}" for one in divisors if one % 2 == 0] or ["cp = 1"]
            least = sequence // chunks * chunks
            lengths = " or ".join(str(one) for one in (least, least + chunks) if one)
            expected = " or ".join(near) + f", or sequences of {lengths} tokens"
            yield Problem(message, key=key, value=str(self.cp), expected=expected)
        kv_heads = max(1, (self.model.kv_heads or self.model.heads) // self.tp)
        if self.context_exchange == "all-to-all" and kv_heads % self.cp:
            message = (
                f"each of cp = {self.cp} ranks has some of the heads: they do not divide {kv_heads} key heads of a rank"
            )
            expected = " or ".join(f"cp = {one}" for one in nearest_divisors(kv_heads, self.cp))
            expected += "" if self.model.window else ', or context_exchange = "ring" or "all-gather"'
            yield Problem(message, key=key, value=str(self.cp), expected=expected)

    def _unseen(self) -> Iterator[Problem]:
        """Problems of attention that looks back at some tokens only."""
        model, window = self.model, str(self.model.window)
        if not model.window:
            return
        if self.cp > 1 and self.context_exchange != "all-to-all":
            message = "ranks that share sequences would exchange keys that no query of a window sees"
            heads = max(1, (model.kv_heads or model.heads) // self.tp)
            near = [f"cp = {one} with " for one in nearest_divisors(heads, self.cp, lambda one: one > 1)]
            ways = near if heads % self.cp else [""]
            expected = " or ".join(["cp = 1", *(f'{one}context_exchange = "all-to-all"' for one in ways)])
            yield Problem(message, key="window", value=window, expected=expected)
        if self.trained.documents:
            message = "a window within packed documents is not simulated"
            yield Problem(message, key="window", value=window, expected="one document a sequence")
        for key in ("kv_rank", "dense_layers"):
            if found := getattr(model, key):
                yield Problem(f"no window is simulated with {key} = {found}", key="window", value=window, expected="0")

    def _untunable(self) -> Iterator[Problem]:
        """Problems of what cannot be fine-tuned so."""
        model, documents = self.model, self.trained.documents
        yield from documents.problems(model.sequence)
        if self.cp > 1 and self.context_exchange != "all-to-all":
            yield from documents.undivided(model.sequence, 2 * self.cp)
        if self.frozen and (model.experts or model.kv_rank or model.mtp):
            message = "adapters are simulated for models without experts, latent attention and multi-token prediction"
            yield Problem(message, key="rank", value=str(self.trained.adapters.rank), expected="0")

    @property
    def fresh_gradients(self) -> bool:
        """Whether gradients of weights are tensors of their own, not added to those of the micro-batches before."""
        return self.trained.fresh_gradients

    @property
    def frozen(self) -> bool:
        """Whether adapters are trained, and no other weights."""
        return bool(self.trained.adapters)

    @property
    def width(self) -> float:
        """Bytes of an element of a weight or an activation."""
        return element_size(self.precision)

    @property
    def hidden(self) -> int:
        """Width of the residual stream."""
        return self.model.hidden

    @property
    def tokens(self) -> int:
        """Tokens of the micro-batch, of those that share sequences this rank's: rows of each matrix product."""
        return self.microbatch * self.context

    @property
    def context(self) -> int:
        """Tokens of a sequence on this rank."""
        return self.model.sequence // self.cp

    @property
    def local_tokens(self) -> int:
        """Tokens of this rank between the matrices."""
        return self.tokens // self.tp if self.sequence_parallel else self.tokens

    @property
    def heads(self) -> int:
        """Query heads of this rank."""
        return self.model.heads // self.tp

    @property
    def kv_heads(self) -> int:
        """Key and value heads of this rank: one at least, which several ranks then have."""
        return max(1, (self.model.kv_heads or self.model.heads) // self.tp)

    @property
    def queries(self) -> int:
        """Width of this rank's query heads."""
        return self.heads * self.model.head_width

    @property
    def attended(self) -> int:
        """Width of what attention gives on this rank."""
        return self.model.attended_width // self.tp

    @property
    def keys(self) -> int:
        """Width of this rank's key heads; its value heads have the same."""
        return self.kv_heads * self.model.head_width

    @property
    def ffn(self) -> int:
        """Width of this rank's part of a feed-forward network without experts."""
        return (self.model.ffn or 4 * self.model.hidden) // self.tp

    @property
    def experts(self) -> ExpertSizes:
        """The experts of a layer on this rank."""
        return expert_sizes(self.model, self.local_tokens, self.ep, self.etp or self.tp, self.routing).at(
            self.place, gates=self.gates
        )

    @property
    def vocabulary(self) -> int:
        """Tokens of the vocabulary on this rank, padded."""
        multiple = _VOCABULARY_MULTIPLE * self.tp
        return math.ceil(self.model.vocabulary / multiple) * _VOCABULARY_MULTIPLE

    @property
    def padding(self) -> int:
        """Tokens that the vocabulary of all ranks is padded with."""
        return self.vocabulary * self.tp - self.model.vocabulary

    @property
    def local(self) -> float:
        """A tensor of the residual stream on this rank [B]."""
        return self.width * self.local_tokens * self.hidden

    @property
    def whole(self) -> float:
        """A tensor of the residual stream with the tokens of all ranks [B]."""
        return self.width * self.tokens * self.hidden

    def weight(self, one: Weight) -> Weight:
        """Part of a weight of the model that this rank has."""
        if self.is_whole(one):
            return one
        first, *rest = one.shape
        if one.name in ("embed.weight", "head.weight"):
            return Weight(one.name, (self.vocabulary, *rest))
        if one.name.endswith(_ROW):
            return Weight(one.name, (first, rest[0] // self.tp))
        if one.name.split(".")[-2] in ("k", "v"):
            return Weight(one.name, (self.keys, *rest))
        return Weight(one.name, (first // self.tp, *rest))

    def is_whole(self, one: Weight) -> bool:
        """Whether every rank has all of a weight of the model."""
        return one.name.startswith("norm.") or any(part in one.name for part in _WHOLE)
