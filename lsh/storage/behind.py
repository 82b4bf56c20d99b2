"""Writing behind: a thread compresses data and writes them to a file, while more are made.

Writing releases the GIL, and takes a third of the time in which records are changed and written; compressing takes
more. Only a few pieces wait at a time, so memory stays bounded.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any

from lsh.base import threads

PIECE = 1 << 18  # bytes that are handed to the thread at once
WAITING = 4  # pieces that wait at most; one that is longer than all of these is written by the caller


class WriteBehind:
    """Calls `write` with what is written, in a thread; in the thread of the caller while there is little.

    An error is raised by a later `write` or by `finish`. Without `finish`, call `stop`.

    Parameters
    ----------
    write : callable
        Writes bytes.
    """

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write
        self._pieces: list[bytes] = []
        self._size = 0
        # An interrupt within queue.Queue can leave its lock held, or its reader asleep; not within a SimpleQueue.
        self._waiting: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._places: queue.SimpleQueue[None] = queue.SimpleQueue()  # for pieces; each takes one until it is written
        for _ in range(WAITING):
            self._places.put(None)
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def write(self, data: Any) -> None:
        """Write bytes, or the bytes of a buffer, which may change afterwards."""
        piece = bytes(data)
        if len(piece) >= PIECE and self._pieces:  # what is long is not copied
            self._hand_over()
        self._pieces.append(piece)
        self._size += len(piece)
        if self._size >= PIECE:
            self._hand_over()

    def finish(self) -> None:
        """Wait until all is written."""
        self._end()
        self._raise()
        self._write(self._taken())

    def stop(self) -> None:
        """Wait for the thread, which writes no more; what waits is lost."""
        self._error = self._error or InterruptedError("writing was stopped")
        self._end()

    def _hand_over(self) -> None:
        """Let the thread write what was collected; without a thread where none can be started."""
        self._raise()
        data = self._taken()
        try:
            if self._thread is None:
                self._thread = threads.started(self._run, daemon=True)
            if self._thread is None:
                self._write(data)
            elif len(data) > WAITING * PIECE:
                self._wait_for_all()
                self._raise()
                self._write(data)
            else:
                self._places.get()
                self._waiting.put(data)
        except BaseException as error:  # an interrupt, too: a piece is missing
            self._error = self._error or error
            raise

    def _wait_for_all(self) -> None:
        """Wait until the thread has written all pieces."""
        for _ in range(WAITING):
            self._places.get()
        for _ in range(WAITING):
            self._places.put(None)

    def _taken(self) -> bytes:
        """Return what was collected."""
        data = b"".join(self._pieces)
        self._pieces, self._size = [], 0
        return data

    def _raise(self) -> None:
        """Raise the error that the thread met."""
        if self._error is not None:
            raise self._error

    def _end(self) -> None:
        """End the thread, also one whose start was interrupted, so that it is not known."""
        self._waiting.put(None)
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        """Write pieces until None comes; after an error take them only, so that their places become free."""
        while (data := self._waiting.get()) is not None:
            if self._error is None:
                try:
                    self._write(data)
                except BaseException as error:
                    self._error = error
            del data  # it may be long
            self._places.put(None)
