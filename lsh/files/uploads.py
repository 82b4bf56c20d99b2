"""Writing files that URLs name: they appear when they are complete, or not at all.

A file at ``s3://`` is a multipart upload that is completed at the end. For other URLs, the data is written to a
temporary file, which is sent at the end.
"""

from __future__ import annotations

import os
import shutil
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Any

from lsh.base.budget import temporary_errors
from lsh.files import remote
from lsh.files.urls import WEB, scheme, shown

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

PART = 1 << 25  # bytes of a part of an upload; S3 allows 10,000 parts, so an object has at most 335 GB


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
        raise ValueError(f"{shown(url)}: {scheme(url)}:// can only be read; write to a local file or to s3://")
    filesystem, name = remote.located(url)
    if "/" not in name.strip("/") and scheme(url) in remote.BUCKETS:
        raise ValueError(f"{shown(url)}: it names a bucket, not a file; write {scheme(url)}://BUCKET/NAME")
    if has_parts(url):
        with remote.explained(url):  # an upload that is aborted: it fails if permissions are missing
            file = filesystem.open(name.rstrip("/"), "wb", block_size=PART, autocommit=False)
            try:
                file._initiate_upload()
            finally:
                file.discard()
                file.closed = True  # else it is uploaded when it is deleted
    else:
        remote.check_bucket(url)


def has_parts(url: str) -> bool:
    """Tell whether a file is sent in parts while it is written."""
    return "s3" in remote.located(url)[0].protocol


def sink(url: str, folder: str | None = None) -> Upload | Spooled:
    """Return a file for writing, as `locations.Sink`; `folder` is for temporary files."""
    return Upload(url) if has_parts(url) else Spooled(url, folder)


class Upload:
    """A multipart upload; a thread sends each part while the next one is written."""

    has_folder = False

    def __init__(self, url: str) -> None:
        self._url = url
        self.file: Any = self
        self._held, self._num_held = list[bytes](), 0
        self._object: Any = None
        self._pool: ThreadPoolExecutor | None = None
        self._sending: Future[Any] | None = None

    def open(self) -> None:
        """Prepare the upload. It begins when the first part is sent."""
        filesystem, name = remote.located(self._url)
        with remote.explained(self._url):
            self._object = filesystem.open(name, "wb", block_size=PART, autocommit=False)

    def write(self, data: bytes) -> int:
        """Write bytes."""
        self._held.append(bytes(data))
        self._num_held += len(data)
        if self._num_held >= PART:
            self._send()
        return len(data)

    def _send(self) -> None:
        self._wait()
        data, self._held, self._num_held = b"".join(self._held), [], 0
        self._start(self._object.write, data)

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

    def complete(self) -> None:
        """Send everything but the request that makes the file appear."""
        self._send()
        self._wait()
        self._start(self._object.close)
        self._end()

    def commit(self) -> None:
        """Let the file appear."""
        self._start(self._object.commit)
        self._end()
        self._object = None

    def discard(self) -> None:
        """Leave no part of a file that did not appear."""
        if self._object is None:
            return
        with suppress(OSError):
            self._wait()
        self._sending = None
        with suppress(OSError):
            self._start(self._object.discard)
            self._end()
        self._object.closed = True  # else it is uploaded when it is deleted
        self._object = None


class Spooled:
    """A temporary file that is sent as a whole at the end.

    Parameters
    ----------
    url : str
        The URL.
    folder : str, optional
        For the temporary file. Default: TMPDIR, or the folder of the system.
    """

    has_folder = False

    def __init__(self, url: str, folder: str | None = None) -> None:
        self._url, self._folder = url, folder
        self.file: Any = self
        self._data: Any = None

    def _errors(self) -> AbstractContextManager[None]:
        return temporary_errors(f"the data of {shown(self._url)}", folder=self._folder)

    def open(self) -> None:
        """Create the temporary file."""
        import tempfile  # slow to import

        with self._errors():
            self._data = tempfile.TemporaryFile(prefix="lsh-", dir=self._folder)  # noqa: SIM115 - closed by discard

    def write(self, data: bytes) -> int:
        """Write bytes."""
        with self._errors():
            return int(self._data.write(data))

    def complete(self) -> None:
        """Write what is buffered."""
        with self._errors():
            self._data.flush()

    def commit(self) -> None:
        """Let the file appear."""
        filesystem, name = remote.located(self._url)
        with remote.explained(self._url):
            filesystem.makedirs(filesystem._parent(name), exist_ok=True)
            self._data.seek(0)
            path = f"/dev/fd/{self._data.fileno()}"  # the file has no other name
            if os.path.exists(path):
                filesystem.put_file(path, name)
            else:  # Windows
                with filesystem.open(name, "wb") as file:
                    shutil.copyfileobj(self._data, file, PART)
        self._data.close()

    def discard(self) -> None:
        """Delete the temporary file."""
        if self._data is not None:
            with suppress(OSError):  # data that cannot be written are not needed
                self._data.close()


def copy(contents: Iterable[bytes], urls: Sequence[str]) -> None:
    """Write small files, several at the same time."""

    def put(item: tuple[tuple[Any, str], str, bytes]) -> None:
        (filesystem, name), url, data = item
        with remote.explained(url):
            filesystem.pipe_file(name, data)

    located = map(remote.located, urls)  # made here: a thread may need its own filesystem
    deque(remote.ahead(put, zip(located, urls, contents), remote.WHOLE_AHEAD), 0)


def remove(url: str) -> None:
    """Remove a file, if it is there."""
    filesystem, name = remote.located(url)
    with suppress(Exception):
        filesystem.rm_file(name)
