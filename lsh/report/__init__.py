"""The report of a deduplication: one page of HTML that needs no other file.

`choose` selects the documents that the page shows, and `html` writes the page. The figures are those of a
`lsh.Deduplication`; `recall` measures the recall on the corpus. `excerpts` shows two texts side by side, as the
page does. The page depends on neither clock nor machine: the same run gives the same bytes. Each step is a module:
choice, measures, charts, pairs, drawing, page. `passages` writes the report of repeated passages, `contained` that of
items within texts.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from lsh.base import checks, errors
from lsh.engine.result import Deduplication
from lsh.report import charts, drawing, page, pairs, recall
from lsh.report.choice import Choice, Pair, checked_result, checked_sizes, choose, sides
from lsh.report.contained import ContainedChoice, choose_contained, contained
from lsh.report.lookup import TextLookup
from lsh.report.measures import DeduplicationRun, count_by_source, dominant_group
from lsh.report.pairs import Excerpt, excerpts
from lsh.report.passages import PassageChoice, choose_passages, passages
from lsh.typing import Indexed, TextsByPosition, TextStream

__all__ = [
    "Choice",
    "ContainedChoice",
    "Excerpt",
    "Pair",
    "PassageChoice",
    "choose",
    "choose_contained",
    "choose_passages",
    "contained",
    "excerpts",
    "html",
    "passages",
]


def html(
    result: Deduplication,
    *,
    texts: TextsByPosition | TextStream,
    choice: Choice | None = None,
    parameters: Mapping[str, object] | None = None,
    ids: TextsByPosition | None = None,
    sizes: Indexed | None = None,
    sources: Indexed | None = None,
    against: TextsByPosition | TextStream | None = None,
    against_ids: TextsByPosition | None = None,
    sample_pairs: int | None = None,
) -> str:
    """Return the report of a deduplication as one page of HTML, well under 2 MB.

    Parameters
    ----------
    result : Deduplication
        As `lsh.deduplicate` returned it.
    texts : sequence of str or bytes, Arrow array, mapping of int to str or bytes, or callable
        The ``n`` documents that were given to it. With `sizes`, only the texts at ``choice.positions`` are read, and a
        dict ``{position: text}`` needs no others. A callable that returns an iterable of the texts is called once for
        the texts that are shown and, without `sizes`, once more for their sizes.
    choice : Choice, optional
        Documents to show, as `choose` returned them for this result. Default: ``choose(result, sizes=sizes)``.
    parameters : mapping of str to object, optional
        Names and values to add to the table of parameters, such as the names of the files.
    ids : sequence or mapping, optional
        Id of each document: str, bytes or any object that `str` accepts. A dict by position needs only those at
        ``choice.positions`` and those of the documents for which these were removed. Default: its position.
    sizes : array_like of int, optional
        UTF-8 bytes of each document. Default: measured, which reads every text.
    sources : sequence, optional
        Source of each document. With it the page has a table of the documents that each source keeps and loses.
    against, against_ids : optional
        The old documents and their ids, as `texts` and `ids`. Required if the result names old documents. If
        `lsh.deduplicate` had an index: ``[index.text_of(id) for id in result.old_ids]`` and ``result.old_ids``.
    sample_pairs : int, optional
        Passed to `choose` if `choice` is not given. Default 500,000.

    Returns
    -------
    str
        The page, to be written as UTF-8. It makes no requests, and markup in texts, ids and sources is escaped.

    Raises
    ------
    TypeError, ValueError
        If a parameter has a wrong type or length, both `choice` and `sample_pairs` are given, or old documents are
        missing.

    Notes
    -----
    The recall is measured on the similar pairs of two samples, which are chosen whether the run finds their pairs or
    not: documents that follow one another, and random documents, whose similar pairs are searched with other hash
    functions. A pair is found if the run removed one of the two. Where the run left out comparisons in large buckets
    (``capped`` of `Deduplication.summary`), only the random documents count, and the page says that the promised recall
    does not hold.

    Examples
    --------
    >>> import lsh
    >>> texts = ["A cat sat on the mat today.", "A dog ran in the park.", "A cat sat on the mat today!"]
    >>> result = lsh.deduplicate(texts, 0.8, shingles=lsh.Shingles(4))
    >>> page = lsh.report.html(result, texts=texts)
    >>> "1 of 3 documents" in page
    True

    For a large corpus, read only the texts that are shown:

    >>> sizes = [len(text) for text in texts]
    >>> choice = lsh.report.choose(result, sizes=sizes)
    >>> shown = {position: texts[position] for position in choice.positions}
    >>> lsh.report.html(result, texts=shown, choice=choice, sizes=sizes) == page
    True
    """
    result = checked_result(result)
    new = TextLookup("texts", texts, "ids", ids, len(result.keep))
    old = None if against is None else TextLookup("against", against, "against_ids", against_ids, None)
    run = _checked_run(result, new, old, sizes)
    sources_count = None if sources is None else count_by_source(sources, result.keep)
    values = drawing.checked_values(parameters)
    choice = _checked_choice(choice, run, sample_pairs)
    run.new.read(choice.positions)
    if run.old is not None:
        run.old.read(choice.against_positions)
    sample = np.array(choice.sample, np.int64)
    measured = recall.measure(
        sample,
        np.array(choice.spread, np.int64),
        run.new.text,
        run.is_found,
        run.threshold,
        run.hasher,
        run.bands,
        with_neighbours=not (run.left_out and choice.spread),
    )
    group = dominant_group(measured, result.labels)
    sections = [
        pairs.around_the_threshold(run, choice),
        pairs.random_removals(run, choice),
        drawing.clusters(run, choice),
        pairs.cluster_members(run, choice),
        *([] if sources_count is None else [drawing.survival(sources_count)]),
        drawing.what_was_run(run, values),
    ]
    parts = [
        drawing.header(run, measured, group),
        drawing.left_out(run, measured),
        drawing.alarm(sources_count or []),
        page.element("div", charts.removals(run), charts.s_curve(run, measured, group), class_="columns"),
        page.contents(sections),
        *sections,
    ]
    return page.document("Deduplication report", page.joined(parts))


def _checked_run(
    result: Deduplication, new: TextLookup, old: TextLookup | None, sizes: Indexed | None
) -> DeduplicationRun:
    """Return the deduplication and its documents, checked; sizes are measured where they are not given."""
    number = len(result.keep)
    if old is None and ((sides(result.removed) == "old").any() or (sides(result.near) == "old").any()):
        raise errors.bad_value(
            "against", "must be given, because the result names old documents; pass the one of deduplicate"
        )
    lengths = new.sizes(number) if sizes is None else checked_sizes(sizes, number)
    parameters = {name: value for name, value in result.parameters.items() if name != "recall"}  # that of an index
    return DeduplicationRun(result, new, old, lengths, **parameters)


def _checked_choice(choice: Choice | None, run: DeduplicationRun, sample_pairs: int | None) -> Choice:
    """Return the choice that was given, or make it."""
    if choice is None:
        sample_pairs = recall.SAMPLE_PAIRS if sample_pairs is None else sample_pairs
        return choose(run.result, sizes=run.sizes, sample_pairs=sample_pairs)
    choice = checks.instance("choice", choice, Choice, "what lsh.report.choose returns")
    if sample_pairs is not None:
        raise errors.bad_value("sample_pairs", "cannot be combined with choice; pass sample_pairs to lsh.report.choose")
    if choice.positions and choice.positions[-1] >= len(run.sizes):
        raise errors.bad_value(
            "choice",
            f"must be made for this result, which has {len(run.sizes):,} documents, "
            f"got one with position {choice.positions[-1]:,}",
        )
    return choice
