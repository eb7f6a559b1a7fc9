"""Fine-tuning: adapters beside frozen matrices, and documents that share a sequence."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from simperf.errors import InputError, Problem, nearest, nearest_divisors

__all__ = ["BASES", "TARGETS", "Adapters", "BasePrecision", "Documents", "Trained"]

BasePrecision: TypeAlias = Literal["as-products", "narrow", "nf4", "nf4-double"]

#: matrices of a block that may have adapters: of queries, keys and values together or each, of attention's output, of
#: the feed-forward network the first, with its gate, and the last
TARGETS = ("qkv", "q", "k", "v", "projection", "up", "down")
#: those that many programs adapt
_ALL = ("qkv", "projection", "up", "down")
#: bytes of a weight of a frozen matrix in 4 bits. Blocks of 64 have a scale in fp32; doubly quantized, blocks of 256
#: such scales have one, and each is 8 bits wide (Dettmers et al., "QLoRA", NeurIPS 2023, section 3; bitsandbytes'
#: `Linear4bit` has these blocks)
BASES = {"nf4": 0.5 + 4 / 64, "nf4-double": 0.5 + 1 / 64 + 4 / (64 * 256)}


@dataclass(frozen=True, slots=True)
class Adapters:
    """Low-rank adapters (LoRA) that are trained in place of all other weights.

    Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models", ICLR 2022; with a base in 4 bits Dettmers et al.,
    "QLoRA", NeurIPS 2023.

    Parameters
    ----------
    rank : int
        of the adapters, beside which all weights are frozen; 0: there are none, and all weights are trained
    targets : tuple of str
        matrices of a block that have one: qkv as a whole or q, k and v each, projection, up (with its gate) and down
    base : str
        how matrices of blocks are kept that are frozen: as wide as products are; as a recipe of narrow products reads
        them, and no wider (narrow); in 4 bits with a scale for each block of 64 (nf4), or with scales that are
        quantized too (nf4-double), which a kernel makes whole before each product

    Raises
    ------
    InputError
        A rank below 0, matrices that there are not, or options without adapters.

    Examples
    --------
    >>> Adapters(rank=16).targets
    ('qkv', 'projection', 'up', 'down')
    """

    rank: int = 0
    targets: tuple[str, ...] = _ALL
    base: BasePrecision = "as-products"

    def __post_init__(self) -> None:
        problems = []
        if self.rank < 0:
            message = "a number of 0 or more is expected"
            problems.append(Problem(message, key="rank", value=str(self.rank)))
        told, known = ", ".join(map(str, self.targets)), ", ".join(TARGETS)
        for one in self.targets:
            if one not in TARGETS:
                message = f"no matrix of a block has this name{nearest(str(one), TARGETS)}"
                problems.append(Problem(message, key="targets", value=str(one), expected=known))
        if not self.targets or len(set(self.targets)) < len(self.targets):
            message = "some matrices are expected, each once"
            problems.append(Problem(message, key="targets", value=told, expected=known))
        if "qkv" in self.targets and {"q", "k", "v"} & set(self.targets):
            message = "queries, keys and values have an adapter together, or each its own"
            problems.append(Problem(message, key="targets", value=told, expected="qkv, or some of q, k and v"))
        if self.base not in (known_bases := get_args(BasePrecision)):
            message = f"frozen weights are not kept so{nearest(str(self.base), known_bases)}"
            expected = ", ".join(known_bases)
            problems.append(Problem(message, key="base", value=str(self.base), expected=expected))
        if not self.rank:
            for key in ("targets", "base"):
                usual = _ALL if key == "targets" else "as-products"
                if (value := getattr(self, key)) != usual:
                    message = "has no effect: there are no adapters, and all weights are trained"
                    problems.append(Problem(message, key=key, value=str(value), expected="a rank of 1 or more"))
        if problems:
            raise InputError(problems)

    def __bool__(self) -> bool:
        """Whether there are any."""
        return self.rank > 0

    def width(self, weight: float) -> float:
        """Bytes of a weight of a frozen matrix of a block, of `weight` bytes, beside what a recipe makes of it [B]."""
        return 0.0 if self.base == "narrow" else BASES.get(self.base, weight)


@dataclass(frozen=True, slots=True)
class Documents:
    """Documents that are packed into a sequence: each token attends to those of its own document only.

    Parameters
    ----------
    tokens : int
        of each document, a divisor of the length of a sequence; 0: a sequence is one document
    lengths : tuple of int
        tokens of each document of a sequence instead, which make the length of a sequence together

    Raises
    ------
    InputError
        Lengths without meaning, or both.

    Examples
    --------
    >>> Documents(lengths=(4, 2, 2)).share(8)
    0.375
    """

    tokens: int = 0
    lengths: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        problems = []
        if self.tokens < 0:
            problems.append(Problem("a number of 0 or more is expected", key="tokens", value=str(self.tokens)))
        if any(one < 1 for one in self.lengths):
            message, told = "documents of 1 token or more are expected", ", ".join(map(str, self.lengths))
            problems.append(Problem(message, key="lengths", value=told))
        if self.tokens and self.lengths:
            message = "the length of each document says it"
            problems.append(Problem(message, key="tokens", value=str(self.tokens), expected="0, or no lengths"))
        if problems:
            raise InputError(problems)

    def __bool__(self) -> bool:
        """Whether there are several in a sequence."""
        return bool(self.tokens or self.lengths)

    def problems(self, sequence: int) -> list[Problem]:
        """The reason for which they do not make a sequence of so many tokens."""
        if self.tokens and sequence % self.tokens:
            message = f"documents of this length do not fill a sequence of {sequence} tokens"
            near = [one for one in range(self.tokens, sequence + 1) if sequence % one == 0][:1]
            expected = f"{near[0]}, or another divisor" if near else f"a divisor of {sequence}"
            return [Problem(message, key="tokens", value=str(self.tokens), expected=expected)]
        if self.lengths and sum(self.lengths) != sequence:
            message = f"these are {sum(self.lengths)} tokens, and a sequence has {sequence}"
            told = ", ".join(map(str, self.lengths))
            return [Problem(message, key="lengths", value=told, expected=f"lengths that make {sequence}")]
        return []

    def undivided(self, sequence: int, chunks: int) -> list[Problem]:
        """The lengths that so many equal chunks do not make, which ranks that share sequences have of each document."""
        message = f"ranks that share sequences have two chunks of each document, {chunks} in all"
        if self.tokens % chunks:
            near = nearest_divisors(sequence, self.tokens, where=lambda one: one % chunks == 0)
            expected = " or ".join([*map(str, near), "a smaller cp"])
            return [Problem(message, key="tokens", value=str(self.tokens), expected=expected)]
        odd = [one for one in self.lengths if one % chunks]
        if odd:
            told = f"multiples of {chunks}, or a smaller cp"
            return [Problem(message, key="lengths", value=", ".join(map(str, odd[:5])), expected=told)]
        return []

    def share(self, sequence: int) -> float:
        """Part of the pairs of tokens of a sequence that are of one document [1]."""
        if self.tokens:
            return self.tokens / sequence
        return sum(one**2 for one in self.lengths) / sequence**2 if self.lengths else 1.0

    def even(self, sequence: int) -> tuple[int, int]:
        """The number of documents of one length that have as many pairs of tokens, and that length.

        Parameters
        ----------
        sequence : int
            Tokens.

        Examples
        --------
        >>> Documents(tokens=512).even(2048), Documents(lengths=(1024, 512, 512)).even(2048)
        ((4, 512), (3, 724))
        """
        share = self.share(sequence)
        count = max(1, round(1.0 / share))
        return count, round(sequence * (share / count) ** 0.5)


@dataclass(frozen=True, slots=True)
class Trained:
    """The part of a model that is trained, on what, and where its gradients are.

    Parameters
    ----------
    adapters : Adapters
    documents : Documents
    fresh_gradients : bool
        Whether a layer's gradients are tensors of their own up to the end of its backward pass, where they are reduced;
        otherwise they are added to those of the micro-batches before.
    """

    adapters: Adapters = field(default_factory=Adapters)
    documents: Documents = field(default_factory=Documents)
    fresh_gradients: bool = False
