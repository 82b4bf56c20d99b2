"""Files that URLs name, read and written through fsspec: ``s3://``, ``gs://``, ``hf://``, ``https://``, ``memory://``.

fsspec and the package that each kind of URL needs are imported when a URL is used. Files are read by ranges, with the
next ranges fetched meanwhile. An object of S3 is written as a multipart upload that is completed at the end; for other
filesystems the data are gathered in a temporary file first. The filesystem finds its own credentials. No message
contains a password or the query of a URL; see `shown`.
"""

from __future__ import annotations

import errno
import io
import os
import re
import tempfile
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from lsh._spill import temporary_errors
from lsh.files.records import InputError

if TYPE_CHECKING:
    from concurrent.futures import Future

BLOCK = 1 << 23  # bytes of a range; smaller ones take longer, as each request costs up to a tenth of a second
AHEAD = 2  # ranges that are fetched while the one before them is used
WHOLE_AHEAD = 8  # small files that are fetched at the same time
GAP = 1 << 18  # bytes that are skipped rather than jumped over: reading them takes about as long as a request
BUFFER = 1 << 16  # bytes that are read at least where reading jumps, as in Parquet files
PART, LARGE_PART = 1 << 23, 1 << 25  # bytes of a part of an upload, which has at most 10,000 parts
MANY = 1000 * PART  # bytes of an upload after which its parts are large; so it has at most 310 GB
CONNECT_TIMEOUT, READ_TIMEOUT = 30, 60  # seconds without an answer of a server of the web
PAUSES = (0.5, 2.0)  # seconds before a range is fetched again after a lost connection

URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")  # a scheme has two characters or more: c:// is no URL
LOCAL = ("file", "local")
WEB = ("http", "https")
VERSION = "?versionId="  # before the version of an object of S3
# Packages by scheme, where the scheme does not have the name of one.
PACKAGES = {"s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "hf": "huggingface_hub"}
PACKAGES |= {"http": "aiohttp", "https": "aiohttp", "abfs": "adlfs", "abfss": "adlfs", "az": "adlfs"}
# Of a listing: the first that there is changes when the file changes.
TAGS = ["ETag", "etag", "generation", "md5Hash", "blob_id", "LastModified", "Last-Modified", "last_modified"]
TAGS += ["mtime", "modified", "updated", "created"]

_IN_TEXT = re.compile(r"""[A-Za-z][A-Za-z0-9+.-]+://[^\s'"<>]*[^\s'"<>:.,;)\]]""")  # without the end of a sentence
_SECRET = re.compile(
    r"(?i)([\w-]*(?:token|secret|signature|sig|password|credential|access.?key)[\w-]*\W{0,4}[=: ]\s*)\S+"
)
MAX_SHOWN_ERROR = 200  # characters of an error of a package


class State(NamedTuple):
    """The size of a file, ``None`` if the server does not tell it, and what changes when the file changes."""

    size: int | None
    tag: str


class Found(NamedTuple):
    """A file or a folder of a listing."""

    url: str
    is_folder: bool
    state: State


def is_url(path: str) -> bool:
    """Tell whether the name of a file is a URL.

    Examples
    --------
    >>> is_url("s3://bucket/news.jsonl"), is_url("C:/news.jsonl"), is_url("day:1/news.jsonl")
    (True, False, False)
    """
    return URL.match(path) is not None


def local(path: str) -> str:
    """Return the path of a ``file://`` URL, and any other name as it is.

    Raises
    ------
    ValueError
        If the URL names another computer.

    Examples
    --------
    >>> local("file:///data/two%20words.txt"), local("s3://bucket/a"), local("a.txt")
    ('/data/two words.txt', 's3://bucket/a', 'a.txt')
    """
    found = URL.match(path)
    if found is None or found[1].lower() not in LOCAL:
        return path
    from urllib.parse import unquote

    host, slash, rest = path[found.end() :].partition("/")
    if host not in ("", "localhost") or not slash:
        raise ValueError(f"{path}: a file:// URL has three slashes before the path, such as file:///data/news.jsonl")
    return unquote(slash + rest)


def shown(path: str) -> str:
    """Return the name of a file for messages: of a URL without user, password, query and fragment.

    Examples
    --------
    >>> shown("https://ann:pa/ss@example.org/a.csv?X-Amz-Signature=0a1b")
    'https://***@example.org/a.csv?***'
    >>> shown("s3://bucket/day@1/a.jsonl"), shown("who?.txt")
    ('s3://bucket/day@1/a.jsonl', 'who?.txt')
    """
    found = URL.match(path)
    if found is None:
        return path
    rest = path[found.end() :]
    authority = rest.partition("/")[0]
    is_password = ":" in authority and not authority.rpartition(":")[2].isdigit()  # that may contain a slash
    end = (rest if is_password and "@" in rest else authority).rfind("@")
    name = path[: found.end()] + ("***@" if end >= 0 else "") + rest[end + 1 :]
    for mark in "?#" if found[1].lower() in WEB else ():
        name, given, _ = name.partition(mark)
        name += f"{mark}***" if given else ""
    return re.sub(r"\?(?=[^/]*=).*", "?***", name)


def file_name(path: str) -> str:
    """Return a URL without a version or, in the web, its query and fragment, so that its ending is that of a file.

    Examples
    --------
    >>> file_name("https://example.org/a.csv.gz?raw=1"), file_name("s3://bucket/what?.txt?versionId=a.b")
    ('https://example.org/a.csv.gz', 's3://bucket/what?.txt')
    """
    path = path.partition(VERSION)[0] if is_url(path) else path
    return re.split("[?#]", path, maxsplit=1)[0] if _scheme(path) in WEB else path


def _scheme(path: str) -> str:
    found = URL.match(path)
    return "" if found is None else found[1].lower()


# ---- filesystems ----


def _located(url: str) -> tuple[Any, str]:
    """Return the filesystem of a URL, and the name of the file there.

    Raises
    ------
    ValueError
        If no filesystem has this scheme.
    ImportError
        If a package is missing.
    """
    scheme = _scheme(url)
    try:
        import fsspec
    except ImportError as error:
        raise ImportError(f'{shown(url)}: URLs need fsspec; run pip install "lsh-dedup[io]"') from error
    if scheme not in fsspec.available_protocols():
        problem = f"{scheme}:// is not a known kind of URL; use s3://, gs://, hf://, https:// or a local path"
        raise ValueError(f"{shown(url)}: {problem}")
    try:
        kind = fsspec.get_filesystem_class(scheme)
        options = _web_options(fsspec.config.conf.get(scheme, {})) if scheme in WEB else {}
        options["use_listings_cache"] = False  # a file that changes must be noticed
        with _explained(url):
            return fsspec.core.url_to_fs(url, **options)[0], kind._strip_protocol(url)
    except ImportError as error:
        package = PACKAGES.get(scheme, scheme)
        raise ImportError(f"{shown(url)}: {scheme}:// needs {package}; run pip install {package}") from error


def _web_options(configured: dict[str, Any]) -> dict[str, Any]:
    """Return options for the web: the bytes of the file itself, and no limit of the time of a whole download."""
    from aiohttp import ClientTimeout

    timeout = ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT, sock_read=READ_TIMEOUT)
    client = {"auto_decompress": False, "timeout": timeout, **configured.get("client_kwargs", {})}
    return {"headers": {"Accept-Encoding": "identity", **configured.get("headers", {})}, "client_kwargs": client}


@contextmanager
def _explained(url: str) -> Iterator[None]:
    """Turn any error of a filesystem into one that names the URL and what to do; nothing secret is in it."""
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
        cause = cause.__cause__ or cause.__context__
    names = " ".join(type(one).__name__ for one in causes)
    name = shown(url)
    status = max((getattr(one, "status", 0) for one in causes if isinstance(getattr(one, "status", 0), int)), default=0)
    if "Credentials" in names:
        problem = f"no credentials found for {_scheme(url)}://; set them as its other programs need them"
        return PermissionError(errno.EACCES, problem, name)
    if "PermissionError" in names or status in (401, 403):
        return PermissionError(errno.EACCES, "access denied; check the credentials and the name", name)
    if status >= 500:
        return OSError(errno.EIO, f"the server failed (status {status}); run again later", name)
    if re.search("Connect|Timeout|Disconnected|Payload|IncompleteRead", names):
        text = f"the connection failed or was lost ({type(causes[-1]).__name__}); check the network and run again"
        return ConnectionError(errno.EIO, text, name)
    if isinstance(error, FileNotFoundError):
        if "bucket does not exist" in str(error):
            return FileNotFoundError(errno.ENOENT, "no such bucket; create it or correct the name", name)
        return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    return OSError(errno.EIO, f"{type(error).__name__}: {_cleaned(str(error))}", name)


def _cleaned(text: str) -> str:
    """Return the first line of a message without secrets.

    Examples
    --------
    >>> _cleaned("GET https://example.org/a?sig=1b2c failed, secret_key: abc")
    'GET https://example.org/a?*** failed, secret_key: ***'
    """
    return _SECRET.sub(r"\1***", shown_in(text.partition("\n")[0]))[:MAX_SHOWN_ERROR]


def shown_in(text: str) -> str:
    """Return a text with each URL in it as `shown` shows it.

    Examples
    --------
    >>> shown_in("cannot read https://ann:secret@example.org/a.csv?sig=1b2c")
    'cannot read https://***@example.org/a.csv?***'
    """
    return _IN_TEXT.sub(lambda match: shown(match[0]), text)


def _is_transient(error: BaseException) -> bool:
    """Tell whether the same request may succeed: the connection was lost, or the server is busy."""
    if isinstance(error, (FileNotFoundError, PermissionError)):
        return False
    of_web = type(error).__module__.partition(".")[0] == "aiohttp"
    status = getattr(error, "status", 500)
    return isinstance(error, (ConnectionError, TimeoutError)) or (of_web and (status >= 500 or status in (408, 429)))


# ---- what there is ----


def key(url: str) -> tuple[str, str]:
    """Return what is equal for two URLs of the same file, without a request."""
    filesystem, name = _located(url)
    return type(filesystem).__name__, name.rstrip("/")


def has_magic(url: str) -> bool:
    """Tell whether a URL is a pattern; in one of the web, ``?`` and ``[`` are no part of a pattern."""
    rest = url[len(_scheme(url)) :].partition(VERSION)[0]
    return "*" in rest if _scheme(url) in WEB else re.search(r"[*?[]", rest) is not None


def matches(url: str) -> list[Found]:
    """Return what matches a pattern, in the order of the names."""
    filesystem, name = _located(url)
    with _explained(url):
        found = filesystem.glob(name, detail=True)
        return [_found(filesystem, one, found[one]) for one in sorted(found)]


def find(url: str) -> Found | None:
    """Return the file or the folder of a URL; ``None`` if there is neither. A folder of the web ends in a slash."""
    filesystem, name = _located(url)
    if _scheme(url) in WEB and url.endswith("/"):
        return Found(url, True, State(None, ""))
    try:
        with _explained(url):
            return _found(filesystem, name, filesystem.info(name))._replace(url=url)
    except FileNotFoundError:
        return None


def list_folder(url: str) -> list[tuple[str, Found]]:
    """Return the files of a folder and of the folders in it, each with its path within the folder."""
    filesystem, name = _located(url)
    start = name.rstrip("/") + "/"
    with _explained(url):
        found = filesystem.find(start if _scheme(url) in WEB else name, detail=True)
        within = {one: info for one, info in found.items() if one.startswith(start) and info["type"] == "file"}
        return [(one.removeprefix(start), _found(filesystem, one, within[one])) for one in sorted(within)]


def join(url: str, relative: str) -> str:
    """Return the URL of a file in a folder."""
    return f"{url.rstrip('/')}/{relative}"


def _found(filesystem: Any, name: str, info: dict[str, Any]) -> Found:
    tag = next((value for value in map(info.get, TAGS) if value), "")
    stamp = tag.timestamp() if hasattr(tag, "timestamp") else tag
    return Found(filesystem.unstrip_protocol(name), info["type"] == "directory", State(info.get("size"), str(stamp)))


# ---- reading ----


class File:
    """A file that a URL names.

    Parameters
    ----------
    url : str
        The URL.
    state : State, optional
        The state of the file when it was found. Default: it is asked for when it is needed.
    """

    def __init__(self, url: str, state: State | None = None) -> None:
        self.url, self.name = url, shown(url)
        self._filesystem, self._name = _located(url)
        self._state = None if state is None or state.size is None else state
        self._has_ranges: bool | None = None if _scheme(url) in WEB else True
        self._options = {} if _has_own_ranges(self._filesystem) else {"cache_type": "none"}

    @property
    def size(self) -> int | None:
        """The size in bytes, ``None`` if the server does not tell it."""
        if self._state is None:
            self._state = self._now()
        return self._state.size

    def has_ranges(self) -> bool:
        """Tell whether the server sends parts of the file; some servers of the web do not."""
        if self._has_ranges is None:
            self._has_ranges = self.size is not None
            with suppress(ValueError), _explained(self.url):
                if self.size is not None and self.size > 1:
                    self._has_ranges = self._sends_second_byte()
        return self._has_ranges

    def _sends_second_byte(self) -> bool:
        with self._filesystem.open(self._name, "rb", block_size=1, cache_type="none", size=self.size) as file:
            file.seek(1)
            try:
                return len(file.read(1)) == 1
            except ValueError:  # the server answers with the whole file
                return False

    def check_unchanged(self) -> None:
        """Refuse a file that changed since its state was asked for first."""
        state = self._now()
        if self._state not in (None, state):
            raise InputError(self.name, "it changed while it was read; run again when nothing writes to it")
        self._state = state

    def _now(self) -> State:
        with _explained(self.url):
            return _found(self._filesystem, self._name, self._filesystem.info(self._name)).state

    @contextmanager
    def stream(self) -> Iterator[IO[bytes]]:
        """Open the file for one reading from the start to the end."""
        options = {"block_size": 0} if _scheme(self.url) in WEB else {}
        with _explained(self.url):
            file = self._filesystem.open(self._name, "rb", **options)
        with closing(_Explained(file, self.url)) as raw, io.BufferedReader(raw, BUFFER) as buffered:
            yield buffered

    @contextmanager
    def opened(self) -> Iterator[IO[bytes]]:
        """Open the file to read any part of it; it must not change until it is closed."""
        self.check_unchanged()
        with closing(_Ranges(self)) as raw, io.BufferedReader(raw, BUFFER) as file:
            yield file
        self.check_unchanged()

    def fetch(self, start: int, stop: int) -> bytes:
        """Return a range of bytes; after a lost connection it is asked for again."""
        for pause in (*PAUSES, None):
            try:
                data: bytes = self._filesystem.cat_file(self._name, start=start, end=stop, **self._options)
                break
            except Exception as error:
                if pause is None or not _is_transient(error):
                    raise _error(self.url, error) from None
                time.sleep(pause)
        if len(data) != stop - start:
            problem = f"expected bytes {start:,} to {stop - 1:,}, got {len(data):,} bytes; run again"
            raise InputError(self.name, problem)
        return data

    def fetched(self, ranges: Iterable[tuple[int, int]]) -> Generator[bytes, None, None]:
        """Yield each range of bytes, and fetch the next ones meanwhile."""
        return _ahead(lambda each: self.fetch(*each), ranges, AHEAD)


def _has_own_ranges(filesystem: Any) -> bool:
    """Tell whether a filesystem asks for a range itself; otherwise it opens a file, which would read ahead."""
    from fsspec import AbstractFileSystem

    return getattr(filesystem.cat_file, "__func__", None) is not AbstractFileSystem.cat_file


def _ahead(fetch: Callable[[Any], bytes], items: Iterable[Any], count: int) -> Generator[bytes, None, None]:
    """Yield what `fetch` returns for each item, in order, while threads fetch the next ones."""
    from concurrent.futures import ThreadPoolExecutor

    waiting: deque[Future[bytes]] = deque()
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
    """A file that is read by ranges: large ones from the start on, with the next ones fetched meanwhile.

    After a jump, as in Parquet files, the first range is as short as possible; if reading goes on from there, each is
    twice as long as the one before.
    """

    def __init__(self, file: File) -> None:
        self._file, self._size = file, file.size or 0
        self._at = self._begin = 0
        self._block = b""
        self._length = BLOCK  # of the next range, if reading goes on
        self._next: Generator[bytes, None, None] | None = None  # the blocks after this one

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
            end = self._at
            self._next = self._file.fetched(
                (start, min(start + BLOCK, self._size)) for start in range(end, self._size, BLOCK)
            )
        while self._begin + len(self._block) <= self._at:
            self._begin, self._block = end, next(self._next)
            end += len(self._block)

    def _stop(self) -> None:
        """Stop to read ahead."""
        if self._next is not None:
            self._next.close()
        self._next = None

    def close(self) -> None:
        self._stop()
        self._block = b""
        super().close()


class _Explained(io.RawIOBase):
    """A file of fsspec whose errors name its URL."""

    def __init__(self, file: IO[bytes], url: str) -> None:
        self._file, self._url = file, url

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with _explained(self._url):
            data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()


def contents(urls: Sequence[str]) -> Iterator[bytes]:
    """Yield the bytes of each file, and fetch the next ones meanwhile."""

    def fetch(url: str) -> bytes:
        file = File(url)
        return file.fetch(0, size) if (size := file.size) else b""

    return _ahead(fetch, urls, WHOLE_AHEAD)


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
    if _scheme(url) in WEB:
        raise ValueError(f"{shown(url)}: files of the web can be read only; write to a local file, or to s3://")
    filesystem, name = _located(url)
    if "/" not in name.strip("/") and _scheme(url) != "memory":
        raise ValueError(f"{shown(url)}: it names no file; write {_scheme(url)}://BUCKET/NAME")
    if _has_parts(filesystem):
        with _explained(url):  # begun and given up: an error of the credentials comes before the work
            file = filesystem.open(name.rstrip("/"), "wb", block_size=PART, autocommit=False)
            try:
                file._initiate_upload()
            finally:
                file.discard()
                file.closed = True  # else it is uploaded when it is deleted


def _has_parts(filesystem: Any) -> bool:
    return "s3" in filesystem.protocol


def sink(url: str) -> Upload | Spooled:
    """Return a file that appears at the URL when `commit` is called; call `discard` in place of it after an error."""
    return Upload(url) if _has_parts(_located(url)[0]) else Spooled(url)


class Upload:
    """A multipart upload, of which a thread sends a part while the next one is written."""

    def __init__(self, url: str) -> None:
        from concurrent.futures import ThreadPoolExecutor

        self._url, self._size = url, 0
        self._held, self._num_held = list[bytes](), 0
        self._part = PART
        filesystem, name = _located(url)
        self._can_grow = not getattr(filesystem, "fixed_upload_size", False)
        with _explained(url):
            self._file = filesystem.open(name, "wb", block_size=PART, autocommit=False)
        self._pool = ThreadPoolExecutor(1)  # an interrupt of the main thread does not break off a request
        self._sending: Future[Any] | None = None
        self._is_over = False

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
        self._sending = self._pool.submit(self._file.write, data)
        if self._size > MANY and self._can_grow:
            self._part = LARGE_PART

    def _wait(self) -> None:
        if self._sending is not None:
            with _explained(self._url):
                self._sending.result()
            self._sending = None

    def close(self) -> None:
        """Send everything but the request that makes the file appear."""
        if self._is_over:
            return
        self._send()
        self._wait()
        self._sending = self._pool.submit(self._file.close)
        self._wait()

    def commit(self) -> None:
        """Let the file appear."""
        self._sending = self._pool.submit(self._file.commit)
        self._wait()
        self._end()

    def discard(self) -> None:
        """Leave no file, and no part of one."""
        with suppress(Exception):
            if self._sending is not None:
                self._sending.result()
        with suppress(Exception):
            self._pool.submit(self._file.discard).result()
        self._file.closed = True  # else it is uploaded when it is deleted
        self._end()

    def _end(self) -> None:
        self._is_over = True
        self._pool.shutdown()


class Spooled:
    """A temporary file that is sent as a whole at the end."""

    def __init__(self, url: str) -> None:
        self._url = url
        with temporary_errors(f"the data of {shown(url)}"):
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
        filesystem, name = _located(self._url)
        with _explained(self._url):
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
        filesystem, name = _located(item[0])
        with _explained(item[0]):
            filesystem.pipe_file(name, item[1])
        return b""

    for _ in _ahead(put, zip(urls, contents), WHOLE_AHEAD):
        pass


def remove(url: str) -> None:
    """Remove a file, if it is there."""
    filesystem, name = _located(url)
    with suppress(Exception):
        filesystem.rm_file(name)
