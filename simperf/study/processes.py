"""Processes of this computer that survive the death of one of them."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any, TypeVar

from simperf.errors import WorkerDiedError

__all__ = ["Processes", "deaf_children"]

T = TypeVar("T")

#: times that a task may see its pool die beside others; after that it is tried alone
_SHARED = 2
#: times that a task may kill the process that has nothing else to do
_ALONE = 2
#: tasks handed to the pool for each of its processes: one at work, one so that it need not wait
_AHEAD = 2


class _TaskFuture(Future[T]):
    """A task's outcome: it cannot be cancelled while a process works on it, and can again when that has died."""

    def __init__(self) -> None:
        super().__init__()
        #: whether the task is in the pool; the base is told only at the end, as it knows no way back
        self.at_work = False

    def running(self) -> bool:
        """Whether a process works on it, or will next."""
        return self.at_work and not self.done()

    def cancel(self) -> bool:
        """Give the task up unless it is at work or done; whether it is given up."""
        return not self.at_work and super().cancel()


@dataclass(slots=True)
class _Task:
    """Task of a process: what is to be done, for whom, and how often its process died so far."""

    future: _TaskFuture[Any]
    call: tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]
    deaths: int = field(default=0)


class Processes(Executor):
    """A pool of processes; when one dies, the pool is made again and its tasks are done again.

    Python's own pool gives up all tasks when a process dies. Here a task that was in the pool then goes
    into the next one; if that dies too, it is tried in a process of its own, so that the task that
    kills its process is distinguished from those that only ran beside it.

    Parameters
    ----------
    workers : int
        Processes. They are started afresh (`spawn`), so that a script which makes an executor needs the usual
        ``if __name__ == "__main__":``.
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._lock = threading.RLock()
        self._waiting: deque[_Task] = deque()
        self._alone: deque[_Task] = deque()
        self._pool: ProcessPoolExecutor | None = None
        self._inside = 0  # tasks in the pool now
        self._isolated = False  # whether the pool has a task all for itself
        self._open = True
        #: held by every process; when this end closes, or we die, they end
        self._held, self._leash = get_context("spawn").Pipe(duplex=False)
        self._idle = threading.Condition(self._lock)
        #: what has ended in the pool: its own thread, which holds its lock then, must not wait for ours
        self._ends: SimpleQueue[tuple[_Task, ProcessPoolExecutor, Future[Any]] | None] = SimpleQueue()
        self._reader: threading.Thread | None = None
        #: tasks that have failed and are to be told so by who lets go of the lock: what waits for them may take it
        self._failed: deque[tuple[_Task, WorkerDiedError]] = deque()

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Have ``fn(*args, **kwargs)`` done in one of the processes.

        Raises
        ------
        RuntimeError
            The executor is shut down.
        """
        future: _TaskFuture[T] = _TaskFuture()
        with self._lock:
            if not self._open:
                raise RuntimeError("the executor is shut down")
            self._waiting.append(_Task(future, (fn, args, kwargs)))
            self._feed()
        self._tell_failed()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more tasks; see `concurrent.futures.Executor.shutdown`."""
        dropped: list[_Task] = []
        with self._lock:
            self._open = False
            if cancel_futures:
                dropped = [*self._waiting, *self._alone]
                self._waiting.clear()
                self._alone.clear()
        for task in dropped:
            if task.future.cancel():
                task.future.set_running_or_notify_cancel()
        reader = self._reader
        wait = wait and reader is not threading.current_thread()  # which reads the ends that are waited for
        with self._lock:
            while wait and self._busy and not self._leash.closed:
                self._idle.wait()
            if self._busy and not self._leash.closed:  # the reader ends the pool after the last task
                return
        if reader is None:
            self._end()
            return
        self._ends.put(None)
        if wait:
            reader.join()

    def abandon(self) -> None:
        """End at once: what waits is cancelled, and what is at work ends with its process."""
        with self._lock:  # which the reader takes to close it as well
            self._leash.close()
        self.shutdown(cancel_futures=True)

    @property
    def _busy(self) -> bool:
        """Whether there is anything to be done; the lock is held."""
        return bool(self._inside or self._waiting or self._alone)

    def _end(self) -> None:
        """Let the processes end, and wait for them."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown()
        with self._lock:
            self._leash.close()
            self._held.close()

    def _tell_failed(self) -> None:
        """Tell tasks that they have failed; the lock is not held."""
        while self._failed:
            task, error = self._failed.popleft()
            if task.future.set_running_or_notify_cancel():
                task.future.set_exception(error)

    def _feed(self) -> None:
        """Hand waiting tasks to the pool, as many as it should have, unless all is given up; the lock is held."""
        while not self._isolated and not self._leash.closed:
            if self._waiting and self._inside < self.workers * _AHEAD:
                task = self._waiting.popleft()
            elif self._alone and not self._inside:
                task, self._isolated = self._alone.popleft(), True
            else:
                return
            self._start(task)

    def _start(self, task: _Task) -> None:
        task.future.at_work = True
        if task.future.cancelled():
            task.future.set_running_or_notify_cancel()
            self._isolated = False
            return
        self._inside += 1
        if self._pool is None:
            self._pool = ProcessPoolExecutor(
                self.workers, mp_context=get_context("spawn"), initializer=_initialise, initargs=(self._held,)
            )
        pool, (function, args, kwargs) = self._pool, task.call
        try:
            with _undisturbed(), deaf_children(), _importable_main():
                inner = pool.submit(function, *args, **kwargs)
        except (BrokenProcessPool, RuntimeError):  # it died since the last look
            self._died(task, pool)
            return
        except OSError as error:  # no memory, or no descriptor, for another process
            self._inside -= 1
            self._isolated = False
            self._failed.append((task, WorkerDiedError(f"no process could be started for it: {error}")))
            return
        if self._reader is None:
            self._reader = threading.Thread(target=self._read_ends, daemon=True)
            with deaf_children():
                self._reader.start()
        inner.add_done_callback(lambda done: self._ends.put((task, pool, done)))

    def _read_ends(self) -> None:
        while (one := self._ends.get()) is not None:
            self._ended(*one)
            with self._lock:
                if not self._open and not self._busy:
                    break
        self._end()
        while not self._ends.empty():  # what was given up ended with the pool
            if (one := self._ends.get()) is not None:
                self._ended(*one)

    def _ended(self, task: _Task, pool: ProcessPoolExecutor, done: Future[Any]) -> None:
        error = None if done.cancelled() else done.exception()
        with self._lock:
            died = done.cancelled() or isinstance(error, BrokenProcessPool)
            if died:
                self._died(task, pool)
        # whoever waits for it may submit the next task at once: without the lock
        if not died and task.future.set_running_or_notify_cancel():
            if error is not None:
                task.future.set_exception(error)
            else:
                task.future.set_result(done.result())
        with self._lock:
            if not died:
                self._inside -= 1
                self._isolated = False
            self._feed()
            self._idle.notify_all()
        self._tell_failed()

    def _died(self, task: _Task, pool: ProcessPoolExecutor) -> None:
        """The pool that held `task` is gone: forget it, and queue the task again; the lock is held."""
        if self._pool is pool:  # its processes have ended, and its thread is the one that says so
            self._pool = None
        self._inside -= 1
        self._isolated = False
        task.deaths += 1
        task.future.at_work = False
        if self._leash.closed:
            self._failed.append((task, WorkerDiedError("it was given up")))
        elif task.deaths < _SHARED:
            self._waiting.appendleft(task)
        elif task.deaths < _SHARED + _ALONE:
            self._alone.append(task)
        else:
            message = f"its process died {task.deaths} times: killed, or out of memory"
            self._failed.append((task, WorkerDiedError(message)))


@contextmanager
def _importable_main() -> Iterator[None]:
    """A program from standard input is no file that a process could import: meanwhile it has none."""
    main = sys.modules["__main__"]
    file = getattr(main, "__file__", None)
    if file is None or os.path.exists(file):
        yield
        return
    del main.__file__
    try:
        yield
    finally:
        main.__file__ = file


@contextmanager
def _undisturbed() -> Iterator[None]:
    """A request to end that comes meanwhile is answered afterwards: a process that has started gets what it reads."""
    if threading.current_thread() is not threading.main_thread():  # no handler runs in another
        yield
        return
    came: list[int] = []
    numbers = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    handlers = {number: handler for number in numbers if callable(handler := signal.getsignal(number))}
    with ExitStack() as stack:
        stack.callback(lambda: [handlers[number](number, None) for number in came[:1]])
        for number, handler in handlers.items():
            stack.callback(signal.signal, number, handler)
            signal.signal(number, lambda which, _: came.append(which))
        yield


@contextmanager
def deaf_children() -> Iterator[None]:
    """Processes and threads that start meanwhile do not hear Ctrl-C, from their first moment on.

    It is the main thread of the process at the terminal that answers it.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # starting later, it would let the signal through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _initialise(held: Connection) -> None:
    """Leave Ctrl-C to the parent, and end when it lets go of `held` or ends itself, also if it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def follow() -> None:
        held.poll(None)  # nothing is ever sent: it returns when nobody holds the other end
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()
