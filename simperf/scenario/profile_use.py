"""Constants of its profiles that a run took, and refusal of profiles that changed nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from simperf.errors import InputError, Problem
from simperf.execution.profile import ObservedFrontend
from simperf.execution.session import Session
from simperf.scenario.settings import Scenario

if TYPE_CHECKING:
    from simperf.hardware import ProfilePart

__all__ = ["ProfileUse", "collective_use", "profile_uses", "refuse_unused"]


class _Subject(NamedTuple):
    """Subject of a group of fitted models.

    Parameters
    ----------
    title : str
    heads : tuple of str
        First words of the models' names.
    takes : str
        What takes the constants in a run; empty if nothing does.
    """

    title: str
    heads: tuple[str, ...]
    takes: str


#: what a run can take of a profile; a model that belongs to several is taken by any of them
_SUBJECTS = (
    _Subject("kernels", ("kernel", "run", "call", "update"), "operations, or a model of the zoo, on {gpu}"),
    _Subject(
        "frontend",
        ("frontend", "wait", "graph", "call", "update", "copy"),
        "launches, waits and copies by a frontend whose constants the scenario does not give itself",
    ),
    _Subject("links", ("link", "copy"), "bytes on links of a kind that was measured"),
    _Subject("network stack", ("network-stack",), "messages between hosts of a machine with a network_stack"),
    _Subject("training steps and intervals", ("boxed",), ""),
    _Subject("devices", ("gpu", "streams", "overlap"), "kernels on {gpu}"),
    _Subject("collectives by NCCL", ("nccl",), 'algorithm = "nccl" for {collectives}'),
)


class ProfileUse(NamedTuple):
    """A profile and what a run took of it.

    Parameters
    ----------
    profile : ProfilePart
    used, unused : tuple of str
        Titles of the subjects that it has constants of.
    doubts : tuple of str
        Why models that it took should be doubted.
    """

    profile: ProfilePart
    used: tuple[str, ...]
    unused: tuple[str, ...]
    doubts: tuple[str, ...] = ()

    @property
    def refusal(self) -> Problem | None:
        """Problem of a profile of which nothing was used."""
        if self.used:
            return None
        known = {subject.title: subject.takes for subject in _subjects(self.profile)}
        words = {
            "gpu": self.profile.gpu or "a GPU",
            "collectives": ", ".join(_named(one) for one in self.profile.collectives()),
        }
        takes = [f"{title}: {text.format(**words)}" for title, text in known.items() if text]
        return Problem(
            "the profile changes nothing in this run",
            file=self.profile.file or self.profile.name,
            value=f"constants of {', '.join(known)}",
            expected="; ".join(takes) or "a profile with constants that a run takes: its own are there to be read",
        )

    @property
    def note(self) -> str:
        """Constants of it that change nothing in the run, in words; empty if all do."""
        if not self.used or not self.unused:
            return ""
        return f"profile {self.profile.name}: its constants of {', '.join(self.unused)} change nothing in this run"


def _named(one: Mapping[str, Any]) -> str:
    """A measured collective in words."""
    inside = f" in {one['servers']} servers" if one["servers"] > 1 else " in one server" if one["servers"] else ""
    return f"{one['collective']} of {one['ranks']} GPUs{inside}{' on ' * bool(one['gpu'])}{one['gpu']}"


def _subjects(profile: ProfilePart) -> Iterator[_Subject]:
    """What a profile has constants of: subjects that a run can use, and what is there to be read only."""
    heads = dict.fromkeys(name.partition(".")[0] for name in profile.model)
    fields: dict[str, Any] = {"kernels": profile.kernels(), "frontend": profile.frontend(), "devices": profile.device()}
    known: set[str] = set()
    for subject in _SUBJECTS:
        found = [head for head in subject.heads if head in heads]
        if found and fields.get(subject.title, True):
            known.update(found)
            yield subject
    yield from (_Subject(head, (head,), "") for head in heads if head not in known)


def profile_uses(scenario: Scenario, session: Session) -> Iterator[ProfileUse]:
    """Use that a run made of each of its scenario's profiles.

    Parameters
    ----------
    scenario : Scenario
    session : Session
        Where its program was simulated.
    """
    kernels = {name.removeprefix("kernel.") for name in session.used if name.startswith("kernel.")}
    parts = _parts(session) if scenario.profiles else {}
    for profile in reversed(scenario.profiles):  # of two with the same constants the later one's count
        own = kernels & set(profile.kernels())
        kernels -= own
        taken = {name.partition(".")[0] for name in session.used if name in profile.model} - {"kernel"}
        used = {
            "kernels": bool(own),
            "frontend": _frontend(profile, scenario, session),
            "links": any(f"link {name}" in scenario.adjusted.get(profile.name, ()) for name in parts["link"]),
            "network stack": any(
                f"network-stack {name}" in scenario.adjusted.get(profile.name, ()) for name in parts["network-stack"]
            ),
            "devices": any(f"gpu {name}" in scenario.adjusted.get(profile.name, ()) for name in parts["gpu"]),
        }
        listed = list(_subjects(profile))
        told = [one.title for one in listed if used.get(one.title) or taken.intersection(one.heads)]
        doubts = tuple(
            f"profile {profile.name}, {name}: {profile.model[f'kernel.{name}'].note}"
            for name in sorted(own)
            if profile.model[f"kernel.{name}"].note
        )
        yield ProfileUse(profile, tuple(told), tuple(one.title for one in listed if one.title not in told), doubts)


def _frontend(profile: ProfilePart, scenario: Scenario, session: Session) -> bool:
    """Whether constants of the frontend were read that come from the profile."""
    front = scenario.frontend
    read = session.profile.read if isinstance(session.profile, ObservedFrontend) else set()
    read = read | ({"depth"} if session.launched else set())
    return any(one and name in read and profile.told in front.source(name) for name, one in profile.frontend().items())


def _parts(session: Session) -> dict[str, set[str]]:
    """Names of the parts that did something."""
    machine: Any = session.simulation.machine
    found: dict[str, set[str]] = {"link": set(), "gpu": set(), "network-stack": set()}
    if machine is None:
        return found
    for name, nbytes in session.simulation.network.moved.items():
        key = name if ">" in name else ">".join(name.split("="))
        if nbytes and ":" not in key and key in machine.edges:
            found["link"].add(machine.edges[key].part)
    stacks = session.simulation.stacks
    found["network-stack"] = {machine.hosting.stack.name} if stacks is not None and stacks.used else set()
    found["gpu"] = {use.device for use in session.operations.values()}
    found["gpu"] = {machine.nodes[name].part.name for name in found["gpu"] if machine.nodes[name].part is not None}
    return found


def collective_use(
    profile: ProfilePart, *, taken: bool, links: Iterable[str], changed: Mapping[str, Iterable[str]]
) -> ProfileUse:
    """Use that a table of a collective made of a profile.

    Parameters
    ----------
    profile : ProfilePart
    taken : bool
        The measured times of the collective were.
    links : iterable of str
        Names of the parts whose links moved bytes.
    changed : mapping of str to iterable of str
        Kind and name of the parts that the profile changed, by its name.
    """
    moved = {f"link {name}" for name in links}.intersection(changed.get(profile.name, ()))
    used = {"collectives by NCCL": taken, "links": bool(moved)}
    listed = [one.title for one in _subjects(profile)]
    told = [title for title in listed if used.get(title)]
    return ProfileUse(profile, tuple(told), tuple(title for title in listed if title not in told))


def refuse_unused(runs: Iterable[Mapping[str, Problem]]) -> None:
    """Refuse the profiles that changed nothing in any of some runs of one scenario.

    Parameters
    ----------
    runs : iterable of mapping of str to Problem
        Of each run: the profiles that changed nothing, and why, as `simperf.results.Result.unused` has it.

    Raises
    ------
    InputError
        Each of them, with what it holds and what would take it.
    """
    found = list(runs)
    names = set.intersection(*(set(unused) for unused in found)) if found else set()
    if names:
        raise InputError([problem for name, problem in found[0].items() if name in names])
