"""Files that URLs name, found, read and written through fsspec: ``s3://``, ``gs://``, ``hf://``, ``https://``, ``memory://``.

fsspec and the package that each kind of URL needs are imported when a URL is used. Files are read by ranges, with the
next ranges fetched meanwhile. They appear when they are complete, or not at all: a file at ``s3://`` is a multipart
upload that is completed at the end, the data for other URLs is written to a temporary file, which is sent at the end.
The filesystem finds its own credentials. Each error of a filesystem becomes an OSError that names the URL as
`urls.shown` shows it.
"""

from __future__ import annotations

import errno
import io
import os
import re
import shutil
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from itertools import tee
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeVar

from lsh.base.arrays import Array
from lsh.base.budget import temporary_errors
from lsh.base.errors import InputError, needing
from lsh.storage.disk import Copy, changed
from lsh.storage.urls import WEB, cleaned, scheme, shown

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

BLOCK = 1 << 23  # bytes of a range; smaller ones take longer, as each request costs up to a tenth of a second
AHEAD = 2  # ranges that are fetched at the same time, before they are needed
WHOLE_AHEAD = 8  # small files that are fetched or sent at the same time
PART = 1 << 25  # bytes of a part of an upload; S3 allows 10,000 parts, so an object has at most 335 GB
GAP = 1 << 18  # bytes; a shorter jump forward is no jump: the bytes are read and skipped
MAX_JOINED = 1 << 20  # bytes between two ranges that one request fetches together; more take longer than a request
BUFFER = 1 << 16  # bytes that are read after a jump at least, as in Parquet files
CONNECT_TIMEOUT, READ_TIMEOUT = 30, 60  # seconds, for https://
PAUSES = (0.5, 2.0)  # seconds before a range is fetched again after a lost connection

# The package that a scheme needs, where it has another name than the scheme.
PACKAGES = {"s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "hf": "huggingface_hub"}
PACKAGES |= {"http": "aiohttp", "https": "aiohttp", "abfs": "adlfs", "abfss": "adlfs", "az": "adlfs"}
BUCKETS = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss")  # URLs of these name a bucket and an object in it
NO_BUCKET = "no such bucket; correct the name, or create it"
# Keys of a file's properties; the first one that a filesystem has shows whether the file changed.
TAGS = ["ETag", "etag", "generation", "md5Hash", "blob_id", "LastModified", "Last-Modified", "last_modified"]
TAGS += ["mtime", "modified", "updated", "created"]

Item = TypeVar("Item")
Part = tuple[Array, Array]  # where some ranges of bytes begin and end, in ascending order


class RemoteState(NamedTuple):
    """The size of a file, ``None`` if the server does not tell it, and a value that changes with the file."""

    size: int | None
    tag: str


class Place(NamedTuple):
    """A file or a folder that was found; `state` is that of a file that a URL names."""

    path: str
    is_folder: bool
    state: RemoteState | None = None


# ---- filesystems ----


def located(url: str) -> tuple[Any, str]:
    """Return the filesystem of a URL, and the name of the file there.

    Raises
    ------
    ValueError
        If no filesystem has this scheme.
    ImportError
        If a package is missing.
    """
    kind = scheme(url)
    with needing(f'{shown(url)}: URLs need fsspec; run pip install "lsh-dedup[io]"'):
        import fsspec
    if kind not in fsspec.available_protocols():
        problem = f"{kind}:// is not a known kind of URL; use s3://, gs://, hf://, https:// or a local path"
        raise ValueError(f"{shown(url)}: {problem}")
    package = PACKAGES.get(kind, kind)
    with needing(f"{shown(url)}: {kind}:// needs {package}; run pip install {package}"):
        filesystem = fsspec.get_filesystem_class(kind)
        options = _web_options(fsspec.config.conf.get(kind, {})) if kind in WEB else {}
        options["use_listings_cache"] = False  # a file that changes must be noticed
        with explained(url):
            found = fsspec.core.url_to_fs(url, **options)[0], filesystem._strip_protocol(url)
    import logging

    logger = logging.getLogger(filesystem.__module__.partition(".")[0])
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())  # else its warnings are printed; errors are raised in any case
    return found


def _web_options(configured: dict[str, Any]) -> dict[str, Any]:
    """Return options for the web: the bytes of the file itself, and no limit of the time of a whole download."""
    from aiohttp import ClientTimeout

    timeout = ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT, sock_read=READ_TIMEOUT)
    client = {"auto_decompress": False, "timeout": timeout, **configured.get("client_kwargs", {})}
    return {"headers": {"Accept-Encoding": "identity", **configured.get("headers", {})}, "client_kwargs": client}


@contextmanager
def explained(url: str) -> Iterator[None]:
    """Turn any error of a filesystem into one that names the URL and what to do, without secrets."""
    try:
        yield
    except (InputError, ImportError, MemoryError):
        raise
    except Exception as error:
        raise _error(url, error) from None  # the error may contain a secret


def _error(url: str, error: BaseException) -> OSError:
    """Return the error of a filesystem as one of the system."""
    causes: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in causes:
        causes.append(cause)
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    names = " ".join(type(one).__name__ for one in causes)
    name = shown(url)
    status = max((getattr(one, "status", 0) for one in causes if isinstance(getattr(one, "status", 0), int)), default=0)
    if "Credentials" in names or "connection_string" in str(error):
        return PermissionError(errno.EACCES, f"no credentials found; {_credentials(scheme(url))}", name)
    if "PermissionError" in names or status in (401, 403):
        return PermissionError(errno.EACCES, "access denied; check the credentials and the name", name)
    if status >= 500:
        return OSError(errno.EIO, f"the server failed (status {status}); run again later", name)
    if re.search("Connect|Timeout|Disconnected|Payload|IncompleteRead", names):
        text = f"the connection failed or was lost ({type(causes[-1]).__name__}); check the network and run again"
        return ConnectionError(errno.EIO, text, name)
    if "TooManyRedirects" in names:
        return OSError(errno.EIO, "the server redirects without end; correct the URL", name)
    if isinstance(error, FileNotFoundError):
        no_bucket = "bucket does not exist" in str(error)
        return FileNotFoundError(errno.ENOENT, NO_BUCKET if no_bucket else os.strerror(errno.ENOENT), name)
    return OSError(errno.EIO, f"{type(error).__name__}: {cleaned(str(error))}", name)


def _credentials(kind: str) -> str:
    """Return what to do where credentials are missing."""
    if kind in ("s3", "s3a"):
        return "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or use aws configure"
    if PACKAGES.get(kind) == "adlfs":
        return "set AZURE_STORAGE_CONNECTION_STRING, or AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY"
    return f"set them as the documentation of {PACKAGES.get(kind, kind)} says"


def _is_transient(error: BaseException) -> bool:
    """Tell whether the same request may succeed: the connection was lost, or the server is busy."""
    if isinstance(error, (FileNotFoundError, PermissionError)):
        return False
    of_web = type(error).__module__.partition(".")[0] == "aiohttp"
    status = getattr(error, "status", 500)
    return isinstance(error, (ConnectionError, TimeoutError)) or (of_web and (status >= 500 or status in (408, 429)))


def check_bucket(url: str) -> None:
    """Raise FileNotFoundError if there is no bucket for a file, in filesystems that have buckets."""
    filesystem, name = located(url)
    if scheme(url) in BUCKETS:
        try:
            filesystem.info(name.strip("/").partition("/")[0])
        except FileNotFoundError:
            raise FileNotFoundError(errno.ENOENT, NO_BUCKET, shown(url)) from None
        except Exception:
            return  # listing the bucket may be forbidden, but not reading and writing files


def state_of(info: dict[str, Any]) -> RemoteState:
    """Return the state of a file by the properties that its filesystem tells."""
    tag = next((value for value in map(info.get, TAGS) if value), "")
    return RemoteState(info.get("size"), str(tag.timestamp() if hasattr(tag, "timestamp") else tag))


# ---- reading ----


class RemoteFile:
    """A file that a URL names.

    Parameters
    ----------
    url : str
        The URL.
    state : RemoteState, optional
        The state of the file when it was found. Default: it is asked for when it is needed.
    folder : str, optional
        For the copy of a file whose server does not send parts of it. Default: TMPDIR, or the folder of the system.
    """

    def __init__(self, url: str, state: RemoteState | None = None, folder: str | None = None) -> None:
        self.url, self.name = url, shown(url)
        self._filesystem, self._name = located(url)
        self._state = None if state is None or state.size is None else state
        self._folder = folder
        self._copy: Copy | None = None
        self._sends_parts = scheme(url) not in WEB  # as far as is known
        self._options = {} if _has_own_ranges(self._filesystem) else {"cache_type": "none"}

    @property
    def size(self) -> int:
        """The size in bytes; the file is copied if the server does not tell it."""
        if self._copy is None:
            size = self._known().size
            if size is not None:
                return size
            self._copy = self._copied()
        return self._copy.size

    def _known(self) -> RemoteState:
        """Return the state when it was asked for first."""
        if self._state is None:
            self._state = self._now()
        return self._state

    def _now(self) -> RemoteState:
        with explained(self.url):
            return state_of(self._filesystem.info(self._name))

    def state(self) -> tuple[Any, ...] | None:
        """Return what another run compares to tell whether the file changed."""
        return tuple(self._known())

    def check_unchanged(self) -> None:
        """Raise InputError if the file changed since its state was asked for first."""
        if self._copy is None:
            state = self._now()
            if self._state not in (None, state):
                raise changed(self.name)
            self._state = state

    @contextmanager
    def opened(self) -> Iterator[IO[bytes]]:
        """Open the file to read any part of it; it must not change until it is closed."""
        self.check_unchanged()
        if self._copy is None and not self._has_ranges():
            self._copy = self._copied()
        if self._copy is not None:
            with self._copy.opened() as file:
                yield file
            return
        with closing(_Ranges(self)) as raw, io.BufferedReader(raw, BUFFER) as file:
            yield file
        self.check_unchanged()

    def _has_ranges(self) -> bool:
        """Tell whether the server sends parts of the file; some servers of the web do not."""
        size = self._known().size
        if size is None or self._sends_parts or size < 2:
            return size is not None
        with explained(self.url), self._open(block_size=1, cache_type="none", size=size) as file:
            file.seek(1)
            try:
                self._sends_parts = len(file.read(1)) == 1
            except ValueError:  # the server answers with the whole file
                return False
        return self._sends_parts

    def _open(self, **options: Any) -> Any:
        with explained(self.url):
            return self._filesystem.open(self._name, "rb", **options)

    def _copied(self) -> Copy:
        """Return a copy of the file, which is read from the start to the end."""
        with closing(self._open(**({"block_size": 0} if scheme(self.url) in WEB else {}))) as file:

            def read(size: int) -> bytes:
                with explained(self.url):
                    return bytes(file.read(size))

            return Copy(read, self.name, self._folder)

    def close(self) -> None:
        """Delete the copy."""
        if self._copy is not None:
            self._copy.close()

    def fetch(self, start: int | None = None, stop: int | None = None) -> bytes:
        """Return a range of bytes, or all; after a lost connection they are asked for again."""
        for pause in (*PAUSES, None):
            try:
                data: bytes = self._filesystem.cat_file(self._name, start=start, end=stop, **self._options)
                break
            except Exception as error:
                if pause is None or not _is_transient(error):
                    raise _error(self.url, error) from None
                time.sleep(pause)
        if start is not None and stop is not None and len(data) != stop - start:
            problem = f"expected bytes {start:,} to {stop - 1:,}, got {len(data):,} bytes; run again"
            raise InputError(self.name, problem)
        return data

    def fetched(self, ranges: Iterable[tuple[int, int]]) -> Generator[tuple[int, bytes], None, None]:
        """Yield each range of bytes with its start, and fetch the next ones meanwhile."""
        return ahead(lambda each: (each[0], self.fetch(*each)), ranges, AHEAD)

    def parts(self, parts: Iterable[Part]) -> Iterator[tuple[int, bytes]]:
        """Yield for each part where its last range ends, and the bytes of its ranges, joined; all ranges ascend."""
        own, others = tee(parts)
        start, block = 0, b""
        with closing(self.fetched(requests(others))) as blocks:
            for begins, ends in own:
                pieces = []
                for begin, end in zip(begins.tolist(), ends.tolist()):
                    while begin < end:
                        while begin >= start + len(block):
                            start, block = next(blocks)
                        stop = min(end, start + len(block))
                        pieces.append(memoryview(block)[begin - start : stop - start])
                        begin = stop
                yield int(ends[-1]), b"".join(pieces)


def requests(parts: Iterable[Part]) -> Iterator[tuple[int, int]]:
    """Yield the ranges of bytes to ask for: together they hold the parts, and each has up to `BLOCK` bytes.

    Bytes between two ranges are read, too, if there are `MAX_JOINED` or fewer.
    """
    start = stop = 0
    for begins, ends in parts:
        for begin, end in zip(begins.tolist(), ends.tolist()):
            if start < stop and (begin > stop + MAX_JOINED or (begin > stop and end > start + BLOCK)):
                yield start, stop
                stop = start
            start = begin if start == stop else start
            stop = end
            while stop > start + BLOCK:
                yield start, start + BLOCK
                start += BLOCK
    if stop > start:
        yield start, stop


def _has_own_ranges(filesystem: Any) -> bool:
    """Tell whether a filesystem asks for a range itself; otherwise it opens a file, which would read ahead."""
    from fsspec import AbstractFileSystem

    return getattr(filesystem.cat_file, "__func__", None) is not AbstractFileSystem.cat_file


def ahead(fetch: Callable[[Any], Item], items: Iterable[Any], count: int) -> Generator[Item, None, None]:
    """Yield what `fetch` returns for each item, in order, while threads fetch the next ones."""
    from concurrent.futures import ThreadPoolExecutor

    waiting: deque[Future[Item]] = deque()
    with ThreadPoolExecutor(count) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(fetch, item))
                if len(waiting) > count:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


class _Ranges(io.RawIOBase):
    """A file that is read in ranges of `BLOCK` bytes; the next ranges are fetched in advance.

    After a jump, as in Parquet files, only the bytes that are asked for are fetched. If reading goes on from there,
    each range is twice as long as the one before.
    """

    def __init__(self, file: RemoteFile) -> None:
        self._file, self._size = file, file.size
        self._at = self._begin = 0
        self._block = b""
        self._length = BLOCK  # of the next range, if reading goes on
        self._next: Generator[tuple[int, bytes], None, None] | None = None  # the blocks after this one

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        if not self._begin <= self._at < self._begin + len(self._block):
            self._load(len(buffer))
        place = self._at - self._begin
        piece = memoryview(self._block)[place : place + len(buffer)]
        buffer[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)

    def _load(self, wanted: int) -> None:
        """Fetch the block at the position."""
        end = self._begin + len(self._block)
        if not end <= self._at < end + (GAP if self._next is None else BLOCK):
            self._stop()
            self._length = max(wanted, 1)
        self._begin, self._block = self._at, b""
        if self._at >= self._size:
            return
        if self._length < BLOCK:
            self._block = self._file.fetch(self._at, min(self._at + self._length, self._size))
            self._length = min(2 * self._length, BLOCK)
            return
        if self._next is None:
            self._next = self._file.fetched(
                (start, min(start + BLOCK, self._size)) for start in range(self._at, self._size, BLOCK)
            )
        while self._begin + len(self._block) <= self._at:
            self._begin, self._block = next(self._next)

    def _stop(self) -> None:
        """Stop reading ahead."""
        if self._next is not None:
            self._next.close()
        self._next = None

    def close(self) -> None:
        self._stop()
        self._block = b""
        super().close()


def contents(urls: Sequence[str]) -> Iterator[bytes]:
    """Yield the bytes of each file, and fetch the next ones meanwhile."""
    return ahead(
        RemoteFile.fetch, map(RemoteFile, urls), WHOLE_AHEAD
    )  # made here: a thread may need its own filesystem


# ---- writing ----


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
    filesystem, name = located(url)
    if "/" not in name.strip("/") and scheme(url) in BUCKETS:
        raise ValueError(f"{shown(url)}: it names a bucket, not a file; write {scheme(url)}://BUCKET/NAME")
    if has_parts(url):
        with explained(url):  # an upload that is aborted: it fails if permissions are missing
            file = filesystem.open(name.rstrip("/"), "wb", block_size=PART, autocommit=False)
            try:
                file._initiate_upload()
            finally:
                file.discard()
                file.closed = True  # else it is uploaded when it is deleted
    else:
        check_bucket(url)


def has_parts(url: str) -> bool:
    """Tell whether a file is sent in parts while it is written."""
    return "s3" in located(url)[0].protocol


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
        filesystem, name = located(self._url)
        with explained(self._url):
            self._object = filesystem.open(name, "wb", block_size=PART, autocommit=False)

    def write(self, data: bytes) -> int:
        """Write bytes."""
        self._held.append(bytes(data))
        self._num_held += len(data)
        if self._num_held >= PART:
            self._send()
        return len(data)

    def _send(self) -> None:
        data, self._held, self._num_held = b"".join(self._held), [], 0
        self._start(self._object.write, data)

    def _start(self, function: Callable[..., object], *given: object) -> None:
        """Call a function in the thread, after the last one; an interrupt of the main thread breaks off no request."""
        self._wait()
        from concurrent.futures import ThreadPoolExecutor

        self._pool = self._pool or ThreadPoolExecutor(1)
        self._sending = self._pool.submit(function, *given)

    def _wait(self) -> None:
        if self._sending is not None:
            with explained(self._url):
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
        self._sending = None  # what is being sent comes before the next call, and its error does not matter
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
        filesystem, name = located(self._url)
        with explained(self._url):
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
        with explained(url):
            filesystem.pipe_file(name, data)

    places = map(located, urls)  # made here: a thread may need its own filesystem
    deque(ahead(put, zip(places, urls, contents), WHOLE_AHEAD), 0)


def remove(url: str) -> None:
    """Remove a file, if it is there."""
    filesystem, name = located(url)
    with suppress(Exception):
        filesystem.rm_file(name)
