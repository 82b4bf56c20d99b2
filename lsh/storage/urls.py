"""Names of files that are URLs: which there are, and how they are shown without what may be secret.

A name is a URL if it begins with a scheme of two characters or more and ``://``; every other name is a local path.
"""

from __future__ import annotations

import os
import re

URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")  # a scheme has two characters or more: c:// is no URL
LOCAL = ("file", "local")
WEB = ("http", "https")
VERSION = "?versionId="  # before the version of an object of S3

_DRIVE = re.compile(r"[A-Za-z]:(/|$)")  # of Windows
_IN_TEXT = re.compile(r"""[A-Za-z][A-Za-z0-9+.-]+://[^\s'"<>]*[^\s'"<>:.,;)\]]""")  # without the end of a sentence
_SECRET = re.compile(
    r"(?i)([\w-]*(?:token|secret|signature|sig|password|credential|access.?key)[\w-]*\W{0,4}[=: ]\s*)\S+"
)
MAX_SHOWN_ERROR = 200  # characters of an error of a package


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
    if os.name == "nt" and _DRIVE.match(rest):
        slash = ""  # file:///C:/news.jsonl
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
    """Return a URL without version, query and fragment, so that it ends as the name of the file does.

    Examples
    --------
    >>> file_name("https://example.org/a.csv.gz?raw=1"), file_name("s3://bucket/what?.txt?versionId=a.b")
    ('https://example.org/a.csv.gz', 's3://bucket/what?.txt')
    """
    path = path.partition(VERSION)[0] if is_url(path) else path
    return re.split("[?#]", path, maxsplit=1)[0] if scheme(path) in WEB else path


def scheme(path: str) -> str:
    """Return the scheme of a URL in lower case, ``""`` for a local path."""
    found = URL.match(path)
    return "" if found is None else found[1].lower()


def has_magic(url: str) -> bool:
    """Tell whether a URL is a pattern; in ``https://`` only ``*`` makes one."""
    rest = url[len(scheme(url)) :].partition(VERSION)[0]
    return "*" in rest if scheme(url) in WEB else re.search(r"[*?[]", rest) is not None


def shown_in(text: str) -> str:
    """Return a text with each URL in it as `shown` shows it.

    Examples
    --------
    >>> shown_in("cannot read https://ann:secret@example.org/a.csv?sig=1b2c")
    'cannot read https://***@example.org/a.csv?***'
    """
    return _IN_TEXT.sub(lambda match: shown(match[0]), text)


def cleaned(text: str) -> str:
    """Return the first line of a message without secrets.

    Examples
    --------
    >>> cleaned("GET https://example.org/a?sig=1b2c failed, secret_key: abc")
    'GET https://example.org/a?*** failed, secret_key: ***'
    """
    return _SECRET.sub(r"\1***", shown_in(text.partition("\n")[0]))[:MAX_SHOWN_ERROR]
