"""The file in which a study keeps every finished point, so that it can be interrupted at any moment.

JSON lines: first what study it is, then a row a point in the order in which they were done. A line is
handed to the system before the next point is counted, so that a process that is killed loses nothing that it
counted; a last line that was torn is cut off when the file is opened again.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from simperf.errors import InputError, Problem
from simperf.file_bytes import refuse_irregular

__all__ = ["LONGEST_ROW", "Journal", "canonical"]

#: of a row as text [B]; ten thousand draws take a quarter of a MiB
LONGEST_ROW = 64 * 1024 * 1024
#: what one line of the file may not hold back longer in case the power fails [s]
_SYNC = 1.0


def canonical(value: Any) -> str:
    """JSON with sorted keys: equal values, equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)


class Journal:
    """Rows of a study on their way to its table; use it in a ``with``.

    Parameters
    ----------
    path : path
    study : mapping
        What study it is: a journal of another one is refused.
    read : callable
        Gives the row that a line's bytes are; raises `InputError` with what is wrong.
    fresh : bool
        Throw away what an earlier run left.

    Attributes
    ----------
    rows : dict of int to dict
        Finished points by number, those of earlier runs too.

    Raises
    ------
    InputError
        It belongs to another study, has a row that is no point of it, another process writes it, or it is read-only.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        study: Mapping[str, Any],
        *,
        read: Callable[[bytes], dict[str, Any]],
        fresh: bool = False,
    ) -> None:
        self.path = Path(path)
        self.rows: dict[int, dict[str, Any]] = {}
        refuse_irregular(path)
        try:
            self._stream = self.path.open("a+b")
        except OSError as error:
            raise InputError(Problem(f"cannot be written: {error.strerror}", file=str(path))) from None
        try:
            self._lock()
            if fresh:
                self._stream.truncate(0)
            self._open(canonical(study).encode(), read)
        except BaseException:
            self._stream.close()
            raise
        self._synced = time.monotonic()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def add(self, row: dict[str, Any]) -> None:
        """Keep a finished point.

        Raises
        ------
        InputError
            It cannot be written, as on a disk that is full.
        """
        try:
            self._stream.write(canonical(row).encode() + b"\n")
            self._stream.flush()
            now = time.monotonic()
            if now - self._synced > _SYNC:
                os.fsync(self._stream.fileno())
                self._synced = now
        except OSError as error:
            raise self._full(error) from None
        self.rows[row["point"]] = row

    def close(self) -> None:
        """Keep the file for later."""
        if not self._stream.closed:
            try:
                self._stream.flush()
                os.fsync(self._stream.fileno())
                self._stream.close()
            except OSError as error:
                with contextlib.suppress(OSError):
                    self._stream.close()
                raise self._full(error) from None

    def _full(self, error: OSError) -> InputError:
        """A point that could not be written; those before it are kept."""
        return InputError(Problem(f"cannot be written: {error.strerror}", file=str(self.path)))

    def remove(self) -> None:
        """Delete the file: the table is written."""
        self.path.unlink(missing_ok=True)
        self.close()

    def _lock(self) -> None:
        """Refuse a second process; systems without such locks do without."""
        with contextlib.suppress(ImportError):
            import fcntl

            try:
                fcntl.flock(self._stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                message = "another process is at work on this study"
                raise InputError(Problem(message, file=str(self.path), expected="another --output")) from None

    def _open(self, study: bytes, read: Callable[[bytes], dict[str, Any]]) -> None:
        self._stream.seek(0)
        number = end = 0
        while (line := self._stream.readline(LONGEST_ROW)).endswith(b"\n"):
            number, end = number + 1, end + len(line)
            if number > 1:
                self._take(line, number, read)
            elif line[:-1] != study:
                message = "points of another study (or of another version of simperf) are kept here"
                expected = "--fresh to throw them away, or another --output"
                raise InputError(Problem(message, file=str(self.path), expected=expected))
        if len(line) == LONGEST_ROW:
            raise self._no_point(number + 1, f"more than {LONGEST_ROW:,} B")
        if line:
            self._stream.truncate(end)
        if not number:
            self._stream.write(study + b"\n")
            self._stream.flush()

    def _take(self, line: bytes, number: int, read: Callable[[bytes], dict[str, Any]]) -> None:
        """Keep the row of a line."""
        try:
            row = read(line)
        except InputError as error:
            raise self._no_point(number, error.problems[0].message) from None
        if row["point"] in self.rows:
            raise self._no_point(number, "the point stands twice")
        self.rows[row["point"]] = row

    def _no_point(self, number: int, why: str) -> InputError:
        message, expected = f"this line is no point of the study: {why}", "--fresh to throw the points away"
        return InputError(Problem(message, file=str(self.path), line=number, expected=expected))
