"""Which files are read: patterns, folders of data files, folders of texts, and the format of each file.

A folder of data files (JSON lines, CSV, Parquet, ...) stands for these files, in the order of their paths. In a folder
of texts (plain text, Markdown, HTML, source code, ...) each file is a document. A folder that holds both, or files of
unknown kinds, is an error. Hidden files are not read, but counted; so are files such as ``_SUCCESS`` beside data files,
and pipes, sockets and devices, which are no files.
This module opens no file.
"""

from __future__ import annotations

import errno
import fnmatch
import os
from collections.abc import Mapping, Sequence
from pathlib import PurePath, PurePosixPath
from typing import NamedTuple

from lsh.base.errors import InputError, Parameter, message
from lsh.base.wording import counted
from lsh.files.records import FOLDER, FORMATS, KNOWN, TABLES, Format
from lsh.storage import compression, urls
from lsh.storage.disk import STANDARD
from lsh.storage.locations import location
from lsh.storage.remote import Place, RemoteState

PATTERN, FORMAT = Parameter("pattern"), Parameter("format")  # in messages
EVERY = "*"  # the pattern of a folder where none is given

# Endings of the files of a folder that are documents, beside .txt and files without an ending.
_ENDINGS = """
text log md markdown rst adoc org tex bib html htm xhtml xml sgm sgml rtf eml srt vtt po yaml yml toml ini cfg conf css
js jsx ts tsx c h cc cpp cxx hpp cs java kt scala go rs rb php pl pm py pyi pyx r jl lua sh bat ps1 sql swift m f90 hs
ml clj el lisp ex erl dart zig v asm s
"""
TEXT_ENDINGS = frozenset(_ENDINGS.split())


class FoundFile(NamedTuple):
    """A file, or a folder in which each file is a document; `state` is that of a file that a URL names."""

    path: str
    format: Format
    state: RemoteState | None = None


class Sources(NamedTuple):
    """The files to read, all of one format, where they were found, and how many hidden and special ones are not read.

    Special files are pipes, sockets and devices. `repeated` are the names by which files are named once more.
    """

    found: list[FoundFile]
    hidden: int
    named: list[Place]
    pattern: str | None
    special: int
    repeated: Sequence[str] = ()


def expanded(paths: Sequence[str]) -> list[Place]:
    """Return the files and folders, with each pattern replaced by what matches it.

    A folder is left out if files in it match, too, as with ``shards/**``: they would be read twice.
    """
    found: list[Place] = []
    for path in paths:
        here = location(path)
        if not here.path:
            raise ValueError("the name of an input file is empty; give a file, a folder or -")
        found += _matches(here.path, here.matches()) if here.is_pattern() else [here.found()]
    if not found:
        raise ValueError("expected the name of a file, a folder or -, got none")
    if sum(place.path == STANDARD for place in found) > 1:
        raise ValueError("standard input (-) can be read only once; name it once")
    return found


def _matches(pattern: str, matches: Sequence[Place]) -> list[Place]:
    """Return what matches a pattern without the folders of other matches."""
    if not matches:
        raise InputError(urls.shown(pattern), "no file matches this pattern; correct it")
    kind = PurePosixPath if urls.is_url(pattern) else PurePath
    parents = {str(parent) for match in matches for parent in kind(match.path).parents}
    return [match for match in matches if str(kind(match.path)) not in parents]


def find_sources(places: Sequence[Place], given: Format | None, pattern: str | None) -> Sources:
    """Return the files to read, in order, each once, also if several names or links lead to it.

    Parameters
    ----------
    places : sequence of Place
        Files and folders; see `expanded`.
    given : Format, optional
        The format of every file. Default: by the endings of their names.
    pattern : str, optional
        Which files of the folders are read.

    Raises
    ------
    InputError
        If the format of a file is unknown, formats differ, or there is a pattern but no folder.
    """
    found: list[FoundFile] = []
    hidden = special = 0
    if pattern is not None and not any(place.is_folder for place in places):
        name = urls.shown(places[0].path)
        raise InputError(name, PATTERN + " is for folders, and this is a file; remove " + PATTERN)
    for place in places:
        if place.is_folder:
            states, num_hidden, num_special = list_folder(place.path, pattern)
            names = _without_marked(list(states), given)
            found += _of_folder(place.path, {name: states[name] for name in names}, given)
            hidden, special = hidden + num_hidden + len(states) - len(names), special + num_special
        else:
            found.append(FoundFile(place.path, _format_of(place.path, given), place.state))
    first = found[0]
    for path, format, _ in found:
        if format.name != first.format.name:
            here, there = ("a folder of texts" if one == FOLDER else one for one in (format.name, first.format.name))
            problem = f"it is {here}, and {urls.shown(first.path)} is {there}; name files of one format"
            raise InputError(urls.shown(path), problem)
    if first.format.name == FOLDER and len(found) > 1:
        problem = "a folder of texts cannot be combined with other inputs; name this folder only"
        raise InputError(urls.shown(first.path), problem)
    once: dict[str, FoundFile] = {}
    repeated = []
    for source in found:
        key = same_key(source.path)
        if key in once and key != STANDARD:
            repeated.append(source.path)
        once.setdefault(key, source)
    return Sources(list(once.values()), hidden, list(places), pattern, special, repeated)


def same_key(path: str) -> str:
    """Return a value that is equal for names which lead to the same file, also by symbolic links; URLs as they are."""
    return path if path == STANDARD or urls.is_url(path) else os.path.realpath(path)


def list_folder(folder: str, pattern: str | None) -> tuple[dict[str, RemoteState | None], int, int]:
    """Return the files of a folder and of the folders in it, how many more are hidden, and how many are special.

    The files are named by their paths within the folder, with ``/``, and sorted by them; each has its state if the
    folder is a URL. A file is hidden if a dot begins its name or the name of a folder, unless the pattern begins with a
    dot, too.

    Raises
    ------
    InputError
        If there is no file to read.
    FileNotFoundError
        If a link leads nowhere.
    """
    place = location(folder)
    shape = EVERY if pattern is None else pattern
    states: dict[str, RemoteState | None] = {}
    hidden = special = 0
    for relative, state in sorted(place.files()):
        name = relative.rpartition("/")[2]
        if not (fnmatch.fnmatchcase(relative, shape) or fnmatch.fnmatchcase(name, shape)):
            continue
        if "/." in f"/{relative}" and not shape.startswith("."):
            hidden += 1
        elif place.is_file(relative):
            states[relative] = state
        else:
            special += 1
    if not states:
        folder = urls.shown(folder)
        only_hidden = f" but {counted(hidden, 'hidden file')}" if hidden else ""
        if pattern is not None:
            raise InputError(folder, f"no file matches the pattern {pattern!r}{only_hidden}; correct " + PATTERN)
        remedy = "read them with " + Parameter("pattern", ".*") + ", or name another folder" if hidden else None
        raise InputError(folder, f"the folder has no file{only_hidden}; " + message(remedy or "name another"))
    return states, hidden, special


def has_ending_of_files(path: str) -> bool:
    """Tell whether the ending of a name is that of data files, of texts or of compressed files."""
    ending, packed = _ending(path)
    return Format.of_path(path) is not None or packed != "" or ending[1:] in TEXT_ENDINGS


def unknown_ending(path: str) -> str:
    """Return the ending of a file's name if it is of no format: ``""`` for a known one, a number, or none.

    Examples
    --------
    >>> unknown_ending("a.zip"), unknown_ending("a.parquet.gz"), unknown_ending("a.gz"), unknown_ending("a.2025")
    ('.zip', '.parquet.gz', '.gz', '')
    """
    name = urls.file_name(path)
    ending, packed = _ending(name)
    return "" if Format.of_path(name) is not None else f"{'' if ending[1:].isdigit() else ending}{packed}"


def _without_marked(names: Sequence[str], given: Format | None) -> Sequence[str]:
    """Return the files of a folder without those that ``_`` begins, beside data files: ``_SUCCESS`` and the like.

    Spark and Arrow do not read such files of a folder either.
    """
    others = [name for name in names if "/_" not in f"/{name}"]
    formats = (_format_in_folder(name, given).name for name in others)
    return others if any(format in (*FORMATS, *TABLES) for format in formats) else names


def _of_folder(folder: str, names: Mapping[str, RemoteState | None], given: Format | None) -> list[FoundFile]:
    """Return the data files of a folder, or the folder itself if it holds texts."""
    if given is not None and given.name == FOLDER:
        return [FoundFile(folder, given)]
    formats = [_format_in_folder(name, given) for name in names]
    examples: dict[str, str] = {}  # a file of each kind
    for name, format in zip(names, formats):
        examples.setdefault(format.name, name)
    _check_kinds(urls.shown(folder), examples)
    kind = next(iter(examples), FOLDER if given is None else given.name)
    if given is not None and kind != given.name:
        raise InputError(
            urls.shown(folder), f"{examples[kind]!r} in it is not {given.name}; choose files with " + PATTERN
        )
    if kind == FOLDER:
        return [FoundFile(folder, Format(FOLDER, ""))]
    place = location(folder)
    return [FoundFile(place.within(name), format, names[name]) for name, format in zip(names, formats)]


def _format_in_folder(name: str, given: Format | None) -> Format:
    """Return the format of a file of a folder: `FOLDER` for a text, an ending with its dot for an unknown kind.

    Each file may be compressed in its own way, also where the format is given.
    """
    found = Format.of_path(name)
    if found is not None and found.name != "txt":
        return found
    ending, _ = _ending(name)
    is_text = ending[1:] in TEXT_ENDINGS
    if given is not None and (given.name == "txt" or not is_text):
        packed = given.compression or (compression.of_path(name) if given.name in FORMATS else "")
        return Format(given.name, packed)
    if found is not None or is_text or not ending or ending[1:].isdigit():
        return Format(FOLDER, "")
    return Format(ending, "")


def _ending(name: str) -> tuple[str, str]:
    """Return the ending of a file's name, with its dot, and that of its compression, empty where there is none."""
    stem, ending = os.path.splitext(os.path.basename(name).lower())
    if ending[1:] not in compression.ENDINGS:
        return ending, ""
    return os.path.splitext(stem)[1], ending


def _check_kinds(folder: str, examples: dict[str, str]) -> None:
    """Refuse a folder of files of several kinds, or of an unknown one."""
    unknown = next((kind for kind in examples if kind.startswith(".")), None)
    files = ", or use " + Parameter("format", FOLDER) + " to read each file as one document"
    if len(examples) > 1:
        shown = ", ".join(f"{name!r} ({_described(kind)})" for kind, name in examples.items())
        known = min(examples, key=lambda kind: (kind.startswith("."), kind == FOLDER))
        remedy = "choose with " + Parameter("pattern", f"*{''.join(_ending(examples[known]))}") + files
        raise InputError(folder, f"it contains files of several kinds: {shown}; " + remedy)
    if unknown is not None:
        problem = f"the ending of {examples[unknown]!r} does not say its format"
        raise InputError(folder, f"{problem}; give " + FORMAT + ", such as " + Parameter("format", "jsonl") + files)


def _described(kind: str) -> str:
    return "a text" if kind == FOLDER else f"unknown ending {kind}" if kind.startswith(".") else kind


def _format_of(path: str, given: Format | None) -> Format:
    """Return the format of a file: the one that is given, or that of its ending."""
    name = urls.shown(path)
    if given is not None and given.name == FOLDER:
        problem = Parameter("format", FOLDER) + " is for folders, and this is a file; give the format of the file"
        raise InputError(name, problem)
    if given is None and path == STANDARD:
        problem = "its format is unknown; give " + FORMAT + f", one of {', '.join(FORMATS)}"
        raise InputError("standard input", problem)
    found = given or Format.of_path(urls.file_name(path))
    if found is None and not urls.is_url(path) and not os.path.lexists(path):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    if found is None:
        folder = "; the URL of a folder ends in a slash" if urls.scheme(path) in urls.WEB else ""
        remedy = "rename it or give " + FORMAT + folder
        raise InputError(name, f"the ending of its name must say its format: {KNOWN}; " + remedy)
    return found
