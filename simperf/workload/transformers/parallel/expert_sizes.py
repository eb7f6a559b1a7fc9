"""Sizes of a mixture of experts on one rank: rows that its experts compute, and rows that go between ranks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

from simperf.errors import InputError, Problem, nearest_divisors
from simperf.workload.expert_loads import expert_loads, shared_loads
from simperf.workload.routing import Routing
from simperf.workload.token_copies import TokenCopies
from simperf.workload.transformers.dimensions import Transformer

__all__ = ["ExpertSizes", "expert_sizes"]

#: options of a routing -> their keys in a file
_KEYS = {
    "load": "expert_load",
    "shares": "expert_shares",
    "capacity": "expert_capacity",
    "padded": "pad_experts",
    "draws": "expert_draws",
    "exchange": "expert_exchange",
    "exchange_blocks": "exchange_blocks",
    "groups": "expert_groups",
    "groups_per_token": "groups_per_token",
}


#: tokens of ranks that differ by less are as many [1]
_ROUNDING = 1e-9


@dataclass(frozen=True, kw_only=True)
class ExpertSizes:
    """The experts of a layer on one of the ranks that they are spread over.

    Parameters
    ----------
    model : Transformer
    tokens : int
        Of the residual stream on each rank.
    ep, etp : int
        Ranks that the experts are spread over, and that share each of them.
    routing : Routing
    place : int
        Of the rank among those that the experts are spread over.
    gates : bool
        Whether the rank stands for all: exchanges carry for each what they do for this one.

    Raises
    ------
    InputError
        Experts that cannot be spread, and all that has no effect without experts.

    Examples
    --------
    >>> mixture = Transformer(
    ...     layers=2, hidden=64, heads=4, vocabulary=256, sequence=16, experts=8, experts_per_token=2
    ... )
    >>> sizes = ExpertSizes(model=mixture, tokens=16, ep=4)
    >>> sizes.sent, sizes.rows, sizes.count, sizes.uneven
    (32, 32, 2, False)
    >>> skewed = ExpertSizes(model=mixture, tokens=16, ep=4, routing=Routing("power-law-1.2"))
    >>> skewed.of_places, sum(skewed.of_places) == 4 * skewed.sent
    ((77, 4, 16, 31), True)
    """

    model: Transformer
    tokens: int
    ep: int = 1
    etp: int = 1
    routing: Routing = field(default_factory=Routing)
    place: int = 0
    gates: bool = False

    def __post_init__(self) -> None:
        if problems := list(self._problems()):
            raise InputError(problems)

    def _problems(self) -> Iterator[Problem]:
        model, routing = self.model, self.routing
        if not model.experts:
            message = "has no effect: the model has no experts"
            if self.ep > 1:
                yield Problem(message, key="ep", value=str(self.ep), expected="1, or a model with experts")
            default = Routing()
            for name, key in _KEYS.items():
                if (value := getattr(routing, name)) != getattr(default, name):
                    expected = "the default, or a model with experts"
                    yield Problem(message, key=key, value=str(value), expected=expected)
            return
        if model.experts % self.ep:
            fewer = "fewer experts than ranks" if model.experts < self.ep else "it does not divide the experts"
            message = f"the {model.experts} experts of a layer are spread over {self.ep} ranks: {fewer}"
            near = " or ".join(f"ep = {one}" for one in nearest_divisors(model.experts, self.ep))
            expected = f"{near}, of which dp x cp x tp / etp is a multiple"
            yield Problem(message, key="ep", value=str(self.ep), expected=expected)
        if model.inner_width % self.etp:
            message = f"etp = {self.etp} does not divide the experts' width, {model.inner_width}"
            near = " or ".join(f"etp = {one}" for one in nearest_divisors(model.inner_width, self.etp))
            expected = f"{near}, of which dp x cp x tp is a multiple"
            yield Problem(message, key="etp", value=str(self.etp), expected=expected)
        if routing.shares and len(routing.shares) != model.experts:
            message = f"there are {model.experts} experts"
            value = f"{len(routing.shares)} shares"
            yield Problem(message, key="expert_shares", value=value, expected=f"{model.experts} numbers")
        if routing.exchange == "deepep":
            yield from self._exchange_problems()

    def _exchange_problems(self) -> Iterator[Problem]:
        model, routing = self.model, self.routing
        if self.ep == 1:
            message, expected = "has no effect: every rank has all experts", "layout.ep above 1, or nccl"
            yield Problem(message, key="expert_exchange", value="deepep", expected=expected)
        if self.etp > 1:
            message = "kernels of DeepEP send tokens to ranks that have whole experts"
            yield Problem(message, key="etp", value=str(self.etp), expected='1, or expert_exchange = "nccl"')
        if routing.groups and model.experts % routing.groups:
            message = f"they do not divide the {model.experts} experts"
            expected = " or ".join(str(one) for one in nearest_divisors(model.experts, routing.groups))
            yield Problem(message, key="expert_groups", value=str(routing.groups), expected=expected)
        elif routing.groups and routing.groups_per_token * model.experts // routing.groups < model.experts_per_token:
            message = f"they have fewer experts than the {model.experts_per_token} that a token chooses"
            value, least = str(routing.groups_per_token), -(-model.experts_per_token * routing.groups // model.experts)
            expected = f"{least} to {routing.groups}"
            yield Problem(message, key="groups_per_token", value=value, expected=expected)
        elif TokenCopies(model.experts, model.experts_per_token, routing.groups).splits(self.ep):
            message = f"a rank of {self.ep} has parts of several of {routing.groups} groups"
            near = nearest_divisors(
                model.experts, routing.groups, where=lambda one: not (one % self.ep and self.ep % one)
            )
            expected = " or ".join(map(str, near))
            yield Problem(message, key="expert_groups", value=str(routing.groups), expected=expected)

    @property
    def count(self) -> int:
        """Experts on this rank."""
        return self.model.experts // self.ep

    @property
    def width(self) -> int:
        """Width of each on this rank."""
        return self.model.inner_width // self.etp

    @property
    def limit(self) -> int:
        """Rows that an expert takes from one rank at most; 0 for any number."""
        even = self.tokens * self.model.experts_per_token / self.model.experts
        return math.ceil(even * self.routing.capacity)

    @cached_property
    def loads(self) -> tuple[int, ...]:
        """Rows of every expert, of all ranks that share the experts."""
        model, routing, group = self.model, self.routing, self.ep * self.etp
        tokens, chosen = self.tokens * group, model.experts_per_token
        if routing.padded:
            return (self.limit * group,) * model.experts
        if routing.shares:
            loads = shared_loads(tokens, chosen, routing.shares)
        else:
            loads = expert_loads(tokens, model.experts, chosen, ranks=self.ep, load=routing.load)
        found = tuple(loads.tolist())
        return tuple(min(rows, self.limit * group) for rows in found) if routing.capacity else found

    @cached_property
    def of_places(self) -> tuple[int, ...]:
        """Rows of the experts of each rank that they are spread over."""
        each = self.count
        return tuple(sum(self.loads[place * each : (place + 1) * each]) for place in range(self.ep))

    @property
    def uneven(self) -> bool:
        """Whether ranks that exchange rows get unequal ones."""
        arrivals = self.arrivals if self.copies is not None else self.of_places
        return not self.gates and (len(set(self.of_places)) > 1 or max(arrivals) > min(arrivals) * (1.0 + _ROUNDING))

    @property
    def rows(self) -> int:
        """Rows that this rank's experts compute."""
        return self.of_places[self.place]

    @property
    def own(self) -> tuple[int, ...]:
        """Rows of each of this rank's experts."""
        each = self.count
        return self.loads[self.place * each : (self.place + 1) * each]

    @property
    def sent(self) -> float:
        """Rows that each rank sends to all experts, those on itself counted."""
        found = sum(self.of_places) / (self.ep * self.etp)
        return int(found) if found.is_integer() else found

    @property
    def received(self) -> float:
        """Rows that this rank gets from the ranks that the experts are spread over, before those of `etp` ranks."""
        return self.rows / self.etp

    @cached_property
    def copies(self) -> TokenCopies | None:
        """The choices of a token, where it goes once to each rank of its experts; None where each choice has a row."""
        routing, model = self.routing, self.model
        if routing.exchange != "deepep":
            return None
        tokens = self.tokens * self.ep
        shares = tuple(rows / tokens for rows in self.loads) if routing.uneven else ()
        return TokenCopies(model.experts, model.experts_per_token, routing.groups, routing.groups_per_token, shares)

    @property
    def arrived(self) -> float:
        """Tokens that this rank gets in the mean, where each goes to it once, those of its own counted."""
        return self.arrivals[self.place]

    @cached_property
    def arrivals(self) -> tuple[float, ...]:
        """The same of each rank that the experts are spread over."""
        assert self.copies is not None
        reached = self.copies.reaches([[place] for place in range(self.ep)], self.ep)
        least = (rows / self.model.experts_per_token for rows in self.of_places)
        return tuple(max(self.tokens * self.ep * part, rows) for part, rows in zip(reached, least, strict=True))

    @property
    def exchanged(self) -> float:
        """Rows that an exchange carries to or from a rank's experts: of the fullest rank where it stands for all."""
        return self.received if self.gates else self.sent

    @property
    def fullest(self) -> int:
        """The place whose experts get most rows."""
        return self.of_places.index(max(self.of_places))

    def at(self, place: int, *, gates: bool = False) -> ExpertSizes:
        """The same on the rank of another place."""
        if place == self.place and gates == self.gates:
            return self
        found = replace(self, place=place, gates=gates)
        found.__dict__["loads"], found.__dict__["copies"] = self.loads, self.copies
        return found


@lru_cache(maxsize=256)
def expert_sizes(model: Transformer, tokens: int, ep: int, etp: int, routing: Routing) -> ExpertSizes:
    """The experts on the first of the ranks that they are spread over; parameters are those of `ExpertSizes`."""
    return ExpertSizes(model=model, tokens=tokens, ep=ep, etp=etp, routing=routing)
