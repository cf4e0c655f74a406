"""What a call of torch.distributed returns: a collective, or a message between two ranks, under way."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from mpi4py import MPI


class Deed(dist.Work):
    """A collective under way. What has gone wrong is raised where it is waited for."""

    def __init__(self, future: torch.futures.Future[Any]) -> None:
        super().__init__()
        self._future = future

    def wait(self, timeout: timedelta | None = None) -> bool:  # noqa: ARG002 - MPI waits as long as it takes
        self._future.wait()
        return True

    def get_future(self) -> torch.futures.Future[Any]:
        return self._future

    def is_completed(self) -> bool:
        return bool(self._future.done())

    def is_success(self) -> bool:
        try:
            return self.is_completed() and self.wait()
        except Exception:
            return False

    def result(self) -> Any:
        return self._future.value()


class Message(dist.Work):
    """A message under way. `buffer` is kept until it has come; what has been received then goes to `into`."""

    def __init__(self, request: MPI.Request, buffer: torch.Tensor, into: torch.Tensor | None = None) -> None:
        super().__init__()
        self._request, self._buffer, self._into = request, buffer, into
        self._status = MPI.Status()
        self._done = False

    def wait(self, timeout: timedelta | None = None) -> bool:  # noqa: ARG002 - MPI waits as long as it takes
        if not self._done:
            self._request.Wait(self._status)
            self._finish()
        return True

    def is_completed(self) -> bool:
        if not self._done and self._request.Test(self._status):
            self._finish()
        return self._done

    def is_success(self) -> bool:
        return self.is_completed()

    def source_rank(self) -> int:
        return int(self._status.Get_source())

    _source_rank = source_rank

    def _finish(self) -> None:
        self._done = True
        if self._into is not None and self._into is not self._buffer:
            self._into.copy_(self._buffer)
