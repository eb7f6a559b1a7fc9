"""Tracks of a timeline: the node that each belongs to."""

from __future__ import annotations

from collections.abc import Iterable

from simperf.engine.recorder import Span

__all__ = ["owner", "split_track"]

#: between the node that sends and the node that receives, in the track of a send
_TO = "/to "


def split_track(track: str, known: Iterable[str] = ()) -> tuple[str, str]:
    """Owner and lane of a track.

    Parameters
    ----------
    track : str
        Such as ``"gpu0/stream0"``.
    known : iterable of str
        Names that are owners as they stand, although they have a slash in them.

    Returns
    -------
    tuple of str
        The node that the track belongs to, and what is left (empty for a node's own track).

    Examples
    --------
    >>> split_track("gpu0/stream0"), split_track("n3/gpu0/to n4/gpu1"), split_track("n3/ssd0", {"n3/ssd0"})
    (('gpu0', 'stream0'), ('n3/gpu0', 'to n4/gpu1'), ('n3/ssd0', ''))
    """
    if track in known:
        return track, ""
    head, found, tail = track.partition(_TO)
    if found:
        return head, f"to {tail}"
    head, found, tail = track.rpartition("/")
    return (head, tail) if found else (track, "")


def owner(span: Span) -> str:
    """Name the node that a span happens on; a storage device's track is its own node."""
    return span.track if span.category == "storage" else split_track(span.track)[0]
