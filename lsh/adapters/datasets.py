"""Near duplicates in Hugging Face datasets: `deduplicate`, `find_pairs` and `screen`.

The texts are read in place, from the Arrow table of a dataset. Requires ``datasets``: ``pip install "datasets>=4"``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from lsh.base import checks, errors
from lsh.engine import dedup
from lsh.engine.result import Deduplication
from lsh.store.screen import Screen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datasets import Dataset, DatasetDict, IterableDataset

__all__ = ["deduplicate", "find_pairs", "screen"]

WORDS = ("first", "last", "longest")  # of `keep`, which are no columns


def deduplicate(
    dataset: Dataset | DatasetDict,
    column: str = "text",
    threshold: float | None = None,
    *,
    keep: str | Sequence[float] = "first",
    against: Dataset | None = None,
    id: str | None = None,
    mark: bool = False,
    add_copies: bool = False,
    **options: Any,
) -> Dataset | DatasetDict:
    """Return a dataset without near duplicates, or with a mark at each.

    Parameters
    ----------
    dataset : datasets.Dataset or datasets.DatasetDict
        The rows. The splits of a ``DatasetDict`` are deduplicated one by one, as its own methods work; pass
        ``datasets.concatenate_datasets(list(splits.values()))`` for all together, or a split and `against`.
    column : str, optional
        The column of the texts.
    threshold : float, optional
        As for `lsh.deduplicate`.
    keep : {"first", "last", "longest"}, str or sequence, optional
        Which one of several near duplicates to keep, as for `lsh.deduplicate`; or a column of numbers or dates, of
        which the highest value is kept.
    against : datasets.Dataset, optional
        Old rows, with the same columns: rows that are near duplicates of one of these are removed, too.
    id : str, optional
        The column whose values name the kept rows of `mark`. Default: row numbers.
    mark : bool, optional
        Return all rows, with ``kept_id`` and ``similarity``, which are null for a kept row; with `against` also
        ``side``, ``"new"`` or ``"old"``.
    add_copies : bool, optional
        Add the column ``copies``: for how many rows each kept one stands, itself included; null for the others. With
        `against`, rows that are removed for an old one are not counted; `mark` shows them.
    **options
        Other parameters of `lsh.deduplicate`, by their names.

    Returns
    -------
    datasets.Dataset or datasets.DatasetDict
        The rows that are kept, in their order. It shares the texts with `dataset`.

    Raises
    ------
    ImportError
        If ``datasets`` is not installed.
    TypeError, ValueError
        If a parameter is wrong; the message names it.
    """

    def one(part: Dataset) -> Dataset:
        import pyarrow

        result, added = decided(part, column, threshold, keep, against, **options), {}
        ids = None if id is None else _values("dataset", part, id)
        if mark:
            old_ids = None if id is None or against is None else _values("against", against, id)
            table = result.to_arrow("documents", ids=ids, old_ids=old_ids)
            added = {name: table[name] for name in table.column_names if name not in ("id", "document")}
            if ids is not None:
                added["kept_id"] = added["kept_id"].cast(ids.type)  # also where no row has one
        if add_copies:
            added["copies"] = pyarrow.array(result.copies, mask=~result.keep)
        marked = _with_columns(part, added)
        return marked if mark else marked.select(result.kept)

    return _each("dataset", dataset, one)


def decided(
    dataset: Dataset,
    column: str,
    threshold: float | None,
    keep: str | Sequence[float],
    against: Dataset | None = None,
    **options: Any,
) -> Deduplication:
    """Return which rows of a dataset to keep; the parameters are those of `deduplicate`."""
    old = None if against is None else _texts("against", against, column)
    chosen: Any = keep if not isinstance(keep, str) or keep in WORDS else _priorities(dataset, keep)
    return dedup.deduplicate(_texts("dataset", dataset, column), threshold, keep=chosen, against=old, **options)


def find_pairs(
    dataset: Dataset | DatasetDict,
    column: str = "text",
    threshold: float | None = None,
    *,
    others: Dataset | None = None,
    id: str | None = None,
    **options: Any,
) -> Dataset | DatasetDict:
    """Return the pairs of near duplicates of a dataset, or of two.

    Parameters
    ----------
    dataset : datasets.Dataset or datasets.DatasetDict
        The rows. The splits of a ``DatasetDict`` are searched one by one.
    column : str, optional
        The column of the texts.
    threshold : float, optional
        As for `lsh.find_pairs`.
    others : datasets.Dataset, optional
        Other rows, with the same columns: only pairs of a row of each are returned.
    id : str, optional
        The column whose values name the rows. Default: row numbers.
    **options
        Other parameters of `lsh.find_pairs`, by their names.

    Returns
    -------
    datasets.Dataset or datasets.DatasetDict
        A row for each pair: ``id1``, ``id2`` and ``similarity``, in the order of `lsh.find_pairs`.

    Raises
    ------
    ImportError, TypeError, ValueError
        As for `deduplicate`.
    """

    def one(part: Dataset) -> Dataset:
        import pyarrow

        second = None if others is None else _texts("others", others, column)
        pairs = dedup.find_pairs(_texts("dataset", part, column), threshold, others=second, **options)
        found = np.fromiter(pairs, np.dtype([("id1", np.int64), ("id2", np.int64), ("similarity", np.float64)]))
        columns = {name: pyarrow.array(found[name]) for name in found.dtype.names or ()}
        if id is not None:
            second_part = ("id2", "dataset", part) if others is None else ("id2", "others", others)
            owners = [("id1", "dataset", part), second_part]
            columns |= {key: _values(name, own, id).take(columns[key]) for key, name, own in owners}
        return _package().Dataset(pyarrow.table(columns))

    return _each("dataset", dataset, one)


def screen(
    dataset: IterableDataset,
    screen: Screen,
    column: str = "text",
    *,
    id: str | None = None,
    batch_size: int = 1000,
) -> IterableDataset:
    """Return a stream without the rows that a screen rejects.

    Parameters
    ----------
    dataset : datasets.IterableDataset or datasets.Dataset
        The rows, which are read once each time the stream is.
    screen : Screen
        The documents that are known, and the similarity from which a row is rejected.
    column : str, optional
        The column of the texts.
    id : str, optional
        The column of the ids: rows that are not rejected are added to the screen under them, so that later rows are
        compared with them, too. The caller commits: ``screen.commit()``. Default: nothing is added.
    batch_size : int, optional
        Rows that are compared at once.

    Returns
    -------
    datasets.IterableDataset or datasets.Dataset
        The rows with another decision than ``"reject"``.

    Raises
    ------
    TypeError, ValueError
        If a parameter is wrong; the message names it.
    """
    checks.instance("screen", screen, Screen, "a Screen", "; for a path, use lsh.Screen.open")

    def passes(texts: list[str], ids: list[Any] | None = None) -> list[bool]:
        verdicts = screen.check_docs(texts) if ids is None else screen.submit_docs(texts, ids)
        return [verdict.decision != "reject" for verdict in verdicts]

    columns = [column] if id is None else [column, id]
    for name in columns:
        _check_column("dataset", dataset, name)
    return dataset.filter(passes, input_columns=columns, batched=True, batch_size=batch_size)


def _package() -> Any:
    with errors.needing('lsh.adapters.datasets requires datasets: run pip install "datasets>=4"'):
        import datasets
    return datasets


def _each(name: str, dataset: Any, function: Callable[[Any], Any]) -> Any:
    """Return what a function makes of a dataset, or of each split."""
    package = _package()
    if isinstance(dataset, package.DatasetDict):
        return package.DatasetDict({split: function(part) for split, part in dataset.items()})
    return function(_checked(name, dataset))


def _checked(name: str, dataset: Any) -> Any:
    remedy = "; use screen for a stream" if name == "dataset" else ""
    return checks.instance(name, dataset, _package().Dataset, "a datasets.Dataset", remedy)


def _check_column(name: str, dataset: Any, column: str) -> None:
    """Check that a dataset has a column, if it knows its columns, as not every stream does."""
    names = dataset.column_names
    if names is not None and column not in names:
        raise errors.bad_value(name, f"must have the column {column!r}, got the columns {', '.join(names)}")


def _texts(name: str, dataset: Any, column: str) -> Any:
    """Return a column, which the library reads in place."""
    _check_column(name, _checked(name, dataset), column)
    return dataset[column]


def _values(name: str, dataset: Any, column: str) -> Any:
    """Return the values of a column, such as ids, as an Arrow array."""
    _texts(name, dataset, column)
    return dataset.select_columns([column]).with_format("arrow")[:][column].combine_chunks()


def _priorities(dataset: Any, column: str) -> Any:
    """Return the numbers or dates of a column, for `keep`."""
    import pyarrow

    if column not in dataset.column_names:
        words = ", ".join(map(repr, WORDS))
        reason = f"must be {words}, numbers, or a column ({', '.join(dataset.column_names)}), got {column!r}"
        raise errors.bad_value("keep", reason)
    values = _values("dataset", dataset, column)
    if pyarrow.types.is_timestamp(values.type) or pyarrow.types.is_date(values.type):
        return values.to_numpy(zero_copy_only=False)
    return values.to_pylist()


def _with_columns(dataset: Any, columns: dict[str, Any]) -> Any:
    """Return a dataset with more columns, Arrow arrays."""
    for name in columns:
        if name in dataset.column_names:
            raise errors.bad_value("dataset", f"has a column {name!r}, which would be added; rename it")
    if not len(dataset):  # to which `add_column` adds nothing
        table = dataset.with_format("arrow")[:]
        for name, column in columns.items():
            table = table.append_column(name, column)
        return _package().Dataset(table)
    for name, column in columns.items():
        dataset = dataset.add_column(name, column)
    return dataset
