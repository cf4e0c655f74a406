"""Calls done one after the other in a thread of their own, so that their caller computes meanwhile."""

from __future__ import annotations

import atexit
import os
import queue
import threading
from collections.abc import Callable
from typing import Any

import torch

Task = Callable[[], Any]
_working: set[Worker] = set()  # those that have a thread


class Worker:
    """Starts its thread with the first call that must not wait."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._tasks: queue.SimpleQueue[tuple[Task, torch.futures.Future] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._begun = self._ended = 0  # written by the caller, by the thread

    def start(self, task: Task) -> torch.futures.Future:
        """Behind all that were started before. The future has the task's result, or its exception.

        Of what a future's callback starts, in this thread, all that were before are done, and nobody else could do it.
        """
        if threading.current_thread() is self._thread:
            return _done(task)
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            self._thread.start()
            _working.add(self)
        future = torch.futures.Future()
        self._begun += 1
        self._tasks.put((task, future))
        return future

    def do(self, task: Task) -> torch.futures.Future:
        """The same, and returns when it is done: in the calling thread if nothing is under way, which saves changing threads."""
        if self._begun != self._ended:
            future = self.start(task)
            self._until_done(future)
            return future
        return _done(task)

    def end(self) -> None:
        """Returns when all is done that was started, callbacks too. A further call starts another thread."""
        if self._thread is not None:
            self._tasks.put(None)
            self._thread.join()
            self._thread = None
            _working.discard(self)

    @staticmethod
    def _until_done(future: torch.futures.Future) -> None:
        done = threading.Event()
        future.add_done_callback(lambda _: done.set())
        done.wait()

    def _work(self) -> None:
        while (one := self._tasks.get()) is not None:
            task, future = one
            # Counted first: who sees the future done may go on without this thread.
            result = _outcome(task)
            self._ended += 1
            _tell(future, result)
            del one, task, future, result  # tensors must not live until the next one comes


def _outcome(task: Task) -> tuple[Any, Exception | None]:
    try:
        return task(), None
    except Exception as error:
        return None, error


def _tell(future: torch.futures.Future, outcome: tuple[Any, Exception | None]) -> None:
    result, error = outcome
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


def _done(task: Task) -> torch.futures.Future:
    future = torch.futures.Future()
    _tell(future, _outcome(task))
    return future


@atexit.register
def _end_all() -> None:
    """Before MPI is finalized, which mpi4py does later, and before Python is, which ends threads where they are, in C++ too."""
    for worker in list(_working):
        worker.end()


os.register_at_fork(after_in_child=_working.clear)  # a child has no such thread, and leaves MPI alone
