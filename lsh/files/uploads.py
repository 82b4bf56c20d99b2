"""Writing files that URLs name: they appear when they are complete, or not at all.

An object of S3 is a multipart upload that is completed at the end. For other filesystems the data are gathered in a
temporary file, which is sent at the end.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from lsh._spill import temporary_errors
from lsh.files import remote
from lsh.files.urls import WEB, scheme, shown

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

BUCKETS = ("s3", "s3a", "gs", "gcs")  # URLs of these name a bucket and an object in it
PART, LARGE_PART = 1 << 23, 1 << 25  # bytes of a part of an upload, which has at most 10,000 parts
MANY = 1000 * PART  # bytes of an upload after which its parts are large; so it has at most 310 GB


def check_target(url: str) -> None:
    """Check that a file can be written, before the work.

    Raises
    ------
    ValueError
        If its filesystem can only be read.
    OSError
        If it cannot be written.
    """
    if scheme(url) in WEB:
        raise ValueError(f"{shown(url)}: files of the web can only be read; write to a local file, or to s3://")
    filesystem, name = remote.located(url)
    if "/" not in name.strip("/") and scheme(url) in BUCKETS:
        raise ValueError(f"{shown(url)}: it names no file; write {scheme(url)}://BUCKET/NAME")
    if has_parts(url):
        with remote.explained(url):  # an upload that is aborted: it fails if permissions are missing
            file = filesystem.open(name.rstrip("/"), "wb", block_size=PART, autocommit=False)
            try:
                file._initiate_upload()
            finally:
                file.discard()
                file.closed = True  # else it is uploaded when it is deleted


def has_parts(url: str) -> bool:
    """Tell whether a file is sent in parts while it is written."""
    return "s3" in remote.located(url)[0].protocol


def sink(url: str) -> Upload | Spooled:
    """Return a file that appears at the URL when `commit` is called; after an error, call `discard` instead."""
    return Upload(url) if has_parts(url) else Spooled(url)


class Upload:
    """A multipart upload, of which a thread sends a part while the next one is written."""

    def __init__(self, url: str) -> None:
        self._url, self._size = url, 0
        self._held, self._num_held = list[bytes](), 0
        self._part = PART
        filesystem, name = remote.located(url)
        self._can_grow = not getattr(filesystem, "fixed_upload_size", False)
        with remote.explained(url):
            self._file = filesystem.open(name, "wb", block_size=PART, autocommit=False)
        self._pool: ThreadPoolExecutor | None = None
        self._sending: Future[Any] | None = None
        self._is_closed = False

    def write(self, data: bytes) -> int:
        """Write bytes."""
        self._held.append(bytes(data))
        self._num_held += len(data)
        if self._num_held >= self._part:
            self._send()
        return len(data)

    def flush(self) -> None:
        """Do nothing: parts have a minimum size."""

    def fileno(self) -> int:
        """Raise OSError: it is no file of the system."""
        raise io.UnsupportedOperation("fileno")

    def _send(self) -> None:
        self._wait()
        data, self._held, self._num_held = b"".join(self._held), [], 0
        self._size += len(data)
        self._file.blocksize = self._part
        self._start(self._file.write, data)
        if self._size > MANY and self._can_grow:
            self._part = LARGE_PART

    def _start(self, function: Callable[..., object], *given: object) -> None:
        """Call a function in the thread: an interrupt of the main thread does not break off a request."""
        from concurrent.futures import ThreadPoolExecutor

        self._pool = self._pool or ThreadPoolExecutor(1)
        self._sending = self._pool.submit(function, *given)

    def _wait(self) -> None:
        if self._sending is not None:
            with remote.explained(self._url):
                self._sending.result()
            self._sending = None

    def _end(self) -> None:
        """Wait, and end the thread: many uploads may wait for `commit`."""
        self._wait()
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def close(self) -> None:
        """Send everything but the request that makes the file appear."""
        if not self._is_closed:
            self._send()
            self._wait()
            self._start(self._file.close)
            self._end()
            self._is_closed = True

    def commit(self) -> None:
        """Let the file appear."""
        self._start(self._file.commit)
        self._end()

    def discard(self) -> None:
        """Leave no file, and no part of one."""
        self._is_closed = True
        with suppress(OSError):
            self._wait()
        self._sending = None
        with suppress(OSError):
            self._start(self._file.discard)
            self._end()
        self._file.closed = True  # else it is uploaded when it is deleted


class Spooled:
    """A temporary file that is sent as a whole at the end."""

    def __init__(self, url: str) -> None:
        self._url = url
        with temporary_errors(f"the data of {shown(url)}"):
            import tempfile  # slow to import

            self._file = tempfile.TemporaryFile(prefix="lsh-")  # noqa: SIM115 - it lives as long as the target

    def write(self, data: bytes) -> int:
        """Write bytes."""
        with temporary_errors(f"the data of {shown(self._url)}"):
            return self._file.write(data)

    def flush(self) -> None:
        """Write what is buffered."""
        with temporary_errors(f"the data of {shown(self._url)}"):
            self._file.flush()

    def fileno(self) -> int:
        """Return the descriptor of the temporary file."""
        return self._file.fileno()

    def close(self) -> None:
        """Write what is buffered; the file stays until `commit` or `discard`."""
        self.flush()

    def commit(self) -> None:
        """Let the file appear."""
        filesystem, name = remote.located(self._url)
        with remote.explained(self._url):
            filesystem.makedirs(filesystem._parent(name), exist_ok=True)
            self._file.seek(0)
            filesystem.put_file(f"/dev/fd/{self._file.fileno()}", name)  # the file has no other name
        self._file.close()

    def discard(self) -> None:
        """Leave no file."""
        self._file.close()


def copy(contents: Iterable[bytes], urls: Sequence[str]) -> None:
    """Write small files, several at the same time."""

    def put(item: tuple[str, bytes]) -> bytes:
        filesystem, name = remote.located(item[0])
        with remote.explained(item[0]):
            filesystem.pipe_file(name, item[1])
        return b""

    for _ in remote.ahead(put, zip(urls, contents), remote.WHOLE_AHEAD):
        pass


def remove(url: str) -> None:
    """Remove a file, if it is there."""
    filesystem, name = remote.located(url)
    with suppress(Exception):
        filesystem.rm_file(name)
