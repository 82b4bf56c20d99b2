"""Which files are read: patterns, folders of data files, folders of texts, and the format of each file.

A folder of data files (JSON lines, CSV, Parquet, ...) stands for these files, in the order of their paths. In a folder
of texts (plain text, Markdown, HTML, source code, ...) each file is a document. A folder that holds both, or files of
unknown kinds, is an error. Hidden files are not read, but counted; so are files such as ``_SUCCESS`` beside data files.
This module opens no file.
"""

from __future__ import annotations

import errno
import fnmatch
import glob
import os
from collections.abc import Sequence
from pathlib import PurePath
from typing import NamedTuple

from lsh._words import counted
from lsh.files import compression
from lsh.files.records import FOLDER, FORMATS, KNOWN, TABLES, Format, InputError
from lsh.files.storage import STANDARD, is_folder

EVERY = "*"  # the pattern of a folder where none is given

# Endings of the files of a folder that are documents, beside .txt and files without an ending.
_ENDINGS = """
text log md markdown rst adoc org tex bib html htm xhtml xml sgm sgml rtf eml srt vtt po yaml yml toml ini cfg conf css
js jsx ts tsx c h cc cpp cxx hpp cs java kt scala go rs rb php pl pm py pyi pyx r jl lua sh bat ps1 sql swift m f90 hs
ml clj el lisp ex erl dart zig v asm s
"""
TEXT_ENDINGS = frozenset(_ENDINGS.split())


class Source(NamedTuple):
    """A file, or a folder in which each file is a document."""

    path: str
    format: Format


class Sources(NamedTuple):
    """The files to read, all of one format, and how many hidden files of folders are not read."""

    found: list[Source]
    hidden: int


def expanded(paths: Sequence[str]) -> list[str]:
    """Return the paths, with each pattern replaced by what matches it.

    A folder is left out if files in it match, too, as with ``shards/**``: they would be read twice.
    """
    found: list[str] = []
    for path in paths:
        if not path:
            raise ValueError("the name of an input file is empty; name a file, a folder or -")
        if path == STANDARD or os.path.lexists(path) or not glob.has_magic(path):
            found.append(path)
            continue
        matches = sorted(glob.glob(path, recursive=True))
        if not matches:
            raise InputError(path, "no file matches this pattern; correct it")
        parents = {parent for match in matches for parent in PurePath(match).parents}
        found += [match for match in matches if PurePath(match) not in parents]
    if not found:
        raise ValueError("expected the name of a file, a folder or -, got none")
    if found.count(STANDARD) > 1:
        raise ValueError("standard input (-) can be read only once; name it once")
    return found


def find_sources(paths: Sequence[str], given: Format | None, pattern: str | None) -> Sources:
    """Return the files to read, in order.

    Parameters
    ----------
    paths : sequence of str
        Files, folders and patterns.
    given : Format, optional
        The format of every file. Default: by the endings of their names.
    pattern : str, optional
        Which files of the folders are read.

    Raises
    ------
    InputError
        If the format of a file is unknown, formats differ, or there is a pattern but no folder.
    """
    found: list[Source] = []
    hidden = 0
    every = expanded(paths)
    folders = {path for path in every if is_folder(path)}
    if pattern is not None and not folders:
        raise InputError(paths[0], "--pattern chooses files of a folder, and this is none; leave it out")
    for path in every:
        if path in folders:
            names, num_hidden = list_folder(path, pattern)
            shown = _without_marked(names, given)
            found += _of_folder(path, shown, given)
            hidden += num_hidden + len(names) - len(shown)
        else:
            found.append(Source(path, _format_of(path, given)))
    first = found[0]
    for path, format in found:
        if format.name != first.format.name:
            here, there = ("a folder of texts" if one == FOLDER else one for one in (format.name, first.format.name))
            raise InputError(path, f"it is {here}, and {first.path} is {there}; read files of one format")
    if first.format.name == FOLDER and len(found) > 1:
        raise InputError(found[1].path, "a folder of texts is read by itself; name one folder, or files")
    return Sources(found, hidden)


def list_folder(folder: str, pattern: str | None) -> tuple[list[str], int]:
    """Return the files of a folder and of the folders in it, and how many more are hidden.

    The files are named by their paths within the folder, with ``/``, and sorted by them. A file is hidden if a dot
    begins its name or the name of a folder, unless the pattern begins with a dot, too.

    Raises
    ------
    InputError
        If there is no file to read.
    """
    shape = EVERY if pattern is None else pattern
    names = []
    hidden = 0
    for inner, _, files in os.walk(folder, onerror=_fail):
        within = os.path.relpath(inner, folder)
        for name in files:
            relative = name if within == os.curdir else f"{within}{os.sep}{name}".replace(os.sep, "/")
            matches = fnmatch.fnmatchcase(relative, shape) or fnmatch.fnmatchcase(name, shape)
            if not matches or not os.path.isfile(os.path.join(inner, name)):
                continue
            if "/." in f"/{relative}" and not shape.startswith("."):
                hidden += 1
            else:
                names.append(relative)
    if not names:
        only_hidden = f" but {counted(hidden, 'hidden file')}" if hidden else ""
        if pattern is not None:
            raise InputError(folder, f"no file matches the pattern {pattern!r}{only_hidden}; correct --pattern")
        remedy = "read them with --pattern '.*', or name another folder" if hidden else "name another"
        raise InputError(folder, f"the folder has no file{only_hidden}; {remedy}")
    return sorted(names), hidden


def has_ending_of_files(path: str) -> bool:
    """Tell whether the ending of a name is that of data files, of texts or of compressed files."""
    ending, packed = _ending(path)
    return Format.of_path(path) is not None or packed != "" or ending[1:] in TEXT_ENDINGS


def _fail(error: OSError) -> None:
    raise error


def _without_marked(names: Sequence[str], given: Format | None) -> Sequence[str]:
    """Return the files of a folder without those that ``_`` begins, beside data files: ``_SUCCESS`` and the like.

    Spark and Arrow do not read such files of a folder either.
    """
    others = [name for name in names if "/_" not in f"/{name}"]
    formats = (_format_in_folder(name, given).name for name in others)
    return others if any(format in (*FORMATS, *TABLES) for format in formats) else names


def _of_folder(folder: str, names: Sequence[str], given: Format | None) -> list[Source]:
    """Return the data files of a folder, or the folder itself if it holds texts."""
    if given is not None and given.name == FOLDER:
        return [Source(folder, given)]
    formats = [_format_in_folder(name, given) for name in names]
    examples: dict[str, str] = {}  # a file of each kind
    for name, format in zip(names, formats):
        examples.setdefault(format.name, name)
    _check_kinds(folder, examples)
    kind = next(iter(examples), FOLDER if given is None else given.name)
    if given is not None and kind != given.name:
        raise InputError(folder, f"it holds files such as {examples[kind]!r}; they are not {given.name}")
    if kind == FOLDER:
        return [Source(folder, Format(FOLDER, ""))]
    return [Source(os.path.join(folder, name), format) for name, format in zip(names, formats)]


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
    files = "or use --format files to read each file as one document"
    if len(examples) > 1:
        shown = ", ".join(f"{name!r} ({_described(kind)})" for kind, name in examples.items())
        known = min(examples, key=lambda kind: (kind.startswith("."), kind == FOLDER))
        remedy = f"choose with --pattern '*{''.join(_ending(examples[known]))}', {files}"
        raise InputError(folder, f"it holds files of several kinds: {shown}; {remedy}")
    if unknown is not None:
        problem = f"the format of {examples[unknown]!r} cannot be told by its ending"
        raise InputError(folder, f"{problem}; name it with --format, such as jsonl, {files}")


def _described(kind: str) -> str:
    return "a text" if kind == FOLDER else f"unknown ending {kind}" if kind.startswith(".") else kind


def _format_of(path: str, given: Format | None) -> Format:
    """Return the format of a file: the one that is given, or that of its ending."""
    if given is not None and given.name == FOLDER:
        raise InputError(path, "--format files is for a folder, and this is none; name the format of the file")
    if given is None and path == STANDARD:
        raise InputError("standard input", f"its format cannot be told; give --format {', '.join(FORMATS)}")
    found = given or Format.of_path(path)
    if found is None and not os.path.lexists(path):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    if found is None:
        raise InputError(path, f"the ending of its name must say its format: {KNOWN}; rename it or give --format")
    return found
