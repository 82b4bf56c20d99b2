"""Duplicates as attributes of dolma, which its mixer removes: `tag_duplicates` for documents, `tag_passages` for text.

A dolma corpus has documents in ``documents/`` and attributes in ``attributes/NAME/``, in files with the same paths and
the same lines. These functions write such files; dolma is not imported. For its mixer: ``pip install dolma``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any, TypeVar

import numpy as np

from lsh.base import checks
from lsh.base.budget import bounded
from lsh.base.errors import bad_value
from lsh.engine import dedup
from lsh.engine.result import Deduplication
from lsh.files import Documents, FolderTarget, Format, Ids, expanded, has_files, is_url, prefetched
from lsh.passages.finding import find_passages
from lsh.passages.result import Passages
from lsh.text.cuts import in_characters

__all__ = ["tag_duplicates", "tag_passages"]

Result = TypeVar("Result")
Rows = np.ndarray[Any, Any]  # about documents: the field "document" has their positions, ascending
Fields = Callable[[Rows, bytes], dict[str, Any]]  # of the line of a document, of which there are rows
READING: dict[str, Any] = {"format": Format("jsonl", ""), "field": "text", "id_field": "id", "pattern": "*.json*"}
READING["null_ids"] = False  # dolma compares the ids with those of the documents


def tag_duplicates(
    documents: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    threshold: float | None = None,
    *,
    name: str = "lsh_duplicate",
    **options: Any,
) -> Deduplication:
    """Find the near duplicates of a dolma corpus, and write an attribute with a span for each document to remove.

    The span is ``[0, length, similarity]``, with the length in characters. Without `against`, the line of the document
    has the id of the kept document, too: ``kept_id``, beside the attributes, which dolma ignores.

    Parameters
    ----------
    documents : str, path or sequence
        Folders, or their URLs: each is the folder ``documents`` of a corpus, or lies in one. All are deduplicated
        together, in this order, and within a folder in the order of the paths.
    threshold : float, optional
        As for `lsh.deduplicate`.
    name : str, optional
        The name of the attribute, and of its folder in ``attributes``, which must not exist, or be empty. The files
        appear there when all are complete.
    **options
        Other parameters of `lsh.deduplicate`, by their names.

    Returns
    -------
    Deduplication
        The result; its positions count the documents in their order.

    Raises
    ------
    TypeError, ValueError
        If a parameter is wrong, or a line: of a document without text or id; the message names it.
    """

    def find(read: Documents) -> tuple[Deduplication, Rows, Fields]:
        result = dedup.deduplicate(read, threshold, **options)
        kept = np.unique(result.removed["kept"])
        ids = None if options.get("against") is not None else Ids(kept, read.at(kept))

        def fields(rows: Rows, text: bytes) -> dict[str, Any]:
            spans = [[0, len(_decoded(text)), rows["similarity"].item()]]
            more = {} if ids is None else {"kept_id": _decoded(ids.of(rows["kept"])[0])}
            return {"attributes": {name: spans}, **more}

        return result, result.removed, fields

    return _tag(documents, name, options, find)


def tag_passages(
    documents: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    min_bytes: int = 200,
    *,
    name: str = "lsh_passages",
    **options: Any,
) -> Passages:
    """Find the passages of a dolma corpus that occur again, and write an attribute with the spans to cut.

    They are `Passages.cuts` in characters, as dolma counts, each with the value 1.

    Parameters
    ----------
    documents, name
        As for `tag_duplicates`.
    min_bytes : int, optional
        As for `lsh.find_passages`.
    **options
        Other parameters of `lsh.find_passages`, by their names.

    Returns
    -------
    Passages
        The result; its positions count the documents in their order.

    Raises
    ------
    TypeError, ValueError
        As for `tag_duplicates`.
    """

    def fields(rows: Rows, text: bytes) -> dict[str, Any]:
        places = in_characters(text, np.stack([rows["start"], rows["end"]], 1))
        return {"attributes": {name: [[start, end, 1.0] for start, end in places.tolist()]}}

    def find(read: Documents) -> tuple[Passages, Rows, Fields]:
        result = find_passages(read, min_bytes, **options)
        return result, result.cuts, fields  # where spans overlap, the mixer would replace the first one only

    return _tag(documents, name, options, find)


def _tag(
    documents: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    name: str,
    options: dict[str, Any],
    find: Callable[[Documents], tuple[Result, Rows, Fields]],
) -> Result:
    """Return what is found in the documents, and write it as an attribute."""
    if not checks.instance("name", name, str, "a str").isidentifier():
        raise bad_value("name", f"must consist of letters, digits and underscores, got {name!r}")
    paths = [os.fspath(one) for one in ([documents] if isinstance(documents, (str, os.PathLike)) else documents)]
    for place in expanded(paths):
        if not place.is_folder:
            raise bad_value("documents", f"must be a folder of .jsonl.gz files, got {place.path}; name its folder")
    budget = bounded(options.get("max_memory"), options.get("temp_dir"))
    with ExitStack() as opened:
        read = Documents(paths, missing=options.get("missing", "error"), budget=budget, **READING)
        opened.enter_context(read)
        places = [_place(file.path, name) for file in read.inputs]
        targets = {folder: opened.enter_context(_target(folder, name)) for folder in dict(places)}
        result, rows, fields = find(read)
        bounds = [*read.starts, read.count]
        for (folder, relative), file, first, end in zip(places, read.inputs, bounds, bounds[1:]):
            with targets[folder].file(relative, file.packed) as target:
                for lines in _lines(read, np.arange(first, end), rows, fields, {"attributes": {name: []}}):
                    target.write(lines)
        for complete in (FolderTarget.complete, FolderTarget.commit):
            for one in targets.values():
                complete(one)
    return result


def _place(path: str, name: str) -> tuple[str, str]:
    """Return where the mixer looks for the attributes of a file: their folder, and the path in it."""
    path = path.replace(os.sep, "/")
    attributes = path.replace("/documents/", f"/attributes/{name}/")
    folder, part, relative = attributes.rpartition(f"/attributes/{name}/")
    if not part or attributes == path:
        raise bad_value("documents", f"must lie in a folder such as corpus/documents, got {path}; move it there")
    return folder + part.rstrip("/"), relative


def _target(folder: str, name: str) -> FolderTarget:
    if has_files(folder):
        raise bad_value("name", f"must be that of a new attribute, got {name!r}; remove {folder} or name another")
    if not is_url(folder):
        os.makedirs(os.path.dirname(folder), exist_ok=True)
    return FolderTarget(folder)


def _lines(read: Documents, positions: Rows, rows: Rows, fields: Fields, others: dict[str, Any]) -> Iterator[bytes]:
    """Yield the lines of the documents at some positions, many together; those without rows have the other fields."""
    done = 0
    for block in prefetched(read.at(positions)):
        ids, texts = block.ids().tolist(), block.texts.tolist()
        bounds = np.searchsorted(rows["document"], positions[done] + np.arange(len(ids) + 1)).tolist()
        lines = []
        for identity, text, first, end in zip(ids, texts, bounds, bounds[1:]):
            own = others if first == end else fields(rows[first:end], text or b"")
            lines.append(json.dumps({"id": _decoded(identity or b""), **own}) + "\n")
        yield "".join(lines).encode()
        done += len(ids)


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "surrogatepass")
