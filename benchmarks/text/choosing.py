"""The figures of docs/choosing.md: similar pairs by shingles, and how edits, thresholds, titles and scripts matter.

Counts and similarities only, no times: the same on every machine. The corpora are those of LSH_DATA; source code is the
standard library of the Python that runs the script. All pairs at 0.5 are found with a recall of `CENSUS_RECALL`, which
at 0.8 misses fewer than one pair in a million; they are the truth for the measured recall of the defaults.

    python benchmarks/text/choosing.py [FOLDER]
"""

from __future__ import annotations

import gzip
import json
import re
import statistics
import sys
import sysconfig
import unicodedata
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import lsh

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import corpora
import harness
from harness import table

THRESHOLD, RECALL = 0.8, 0.99  # the defaults of `deduplicate`
CENSUS, CENSUS_RECALL, CENSUS_SEEDS = 0.5, 0.999, 256
RANDOM_STATES = range(5)
BOUNDS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
SHINGLES = (
    lsh.Shingles(3),
    lsh.Shingles(5),
    lsh.Shingles(8),
    lsh.Shingles(16),
    lsh.Shingles(24),
    lsh.Shingles(3, "word"),
    lsh.Shingles(5, "word"),
)
PLAIN = {"lowercase": True, "strip_punctuation": True, "collapse_whitespace": True}
SIZES = (150, 500, 1500)  # bytes of the texts that are edited
MOST_EDITED = 300  # texts of a size
SCRIPT_TEXTS, SCRIPT_LENGTH = 1000, 200  # texts of a script, and characters of each
THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)
Texts = list[bytes]
Result = dict[str, Any]


def name_of(shingles: lsh.Shingles) -> str:
    """Return the shingles in words, such as "8 characters"."""
    return f"{shingles.n} {'words' if shingles.unit == 'word' else 'characters'}"


def texts_of(name: str, *prefixes: str) -> Texts:
    """Return the texts of a corpus, of those ids only that begin with one of the prefixes, if any are given."""
    found = harness.corpus(name)
    if found is None:
        raise SystemExit(f"no file {name}; set LSH_DATA to the folder that holds it")
    return [text for doc_id, text in zip(found.ids, found.texts) if not prefixes or doc_id.startswith(prefixes)]


def source_code() -> Texts:
    """Return the modules of Python's standard library."""
    folder = Path(sysconfig.get_path("stdlib"))
    files = [path for path in sorted(folder.rglob("*.py")) if "site-packages" not in path.parts]
    return [text for text in (path.read_bytes() for path in files) if text]


def all_texts() -> dict[str, Texts]:
    """Return the corpora by what they are."""
    return {
        "news (Reuters-21578)": texts_of("reuters21578.tsv.gz"),
        "classified ads (Italian)": texts_of("ads_rome_it.tsv.gz"),
        "web pages of one site (Win32)": texts_of("win32docs.tsv.gz"),
        "source code (Python)": source_code(),
        "bibliographic records": texts_of("refs_respiratory.jsonl.gz"),
        "poems (Chinese)": texts_of("multilingual.jsonl.gz", "poem"),
    }


# ---- pairs by shingles ----


def pairs_by_shingles(texts: Texts, shingles: lsh.Shingles) -> dict[str, Any]:
    """Count the pairs of a corpus by similarity, and what the defaults of `deduplicate` and `find_pairs` make of it."""
    hasher = lsh.MinHasher(CENSUS_SEEDS, scheme="fss", shingles=shingles)
    pairs = {(i, j): s for i, j, s in lsh.find_pairs(texts, CENSUS, hasher=hasher, recall=CENSUS_RECALL)}
    similarities = np.array(list(pairs.values()))
    counts = [int(((similarities >= low) & (similarities < high)).sum()) for low, high in pairwise(BOUNDS)]
    true = {pair for pair, similarity in pairs.items() if similarity >= THRESHOLD}
    recalls = [
        len({(i, j) for i, j, _ in lsh.find_pairs(texts, THRESHOLD, shingles=shingles, random_state=state)} & true)
        / max(len(true), 1)
        for state in RANDOM_STATES
    ]
    summary = lsh.deduplicate(texts, THRESHOLD, shingles=shingles).summary()
    return {
        "shingles": name_of(shingles),
        "counts": [*counts, int((similarities == 1.0).sum())],
        "recall": statistics.mean(recalls),
        **{key: summary[key] for key in ("documents", "removed", "candidates", "compared")},
    }


# ---- edits ----


def words_replaced(text: bytes, count: int, number: int) -> bytes:
    """Replace words that are spread evenly over the text by words that it does not have."""
    words = text.split(b" ")
    for k in range(count):
        at = (2 * k + 1) * len(words) // (2 * count)
        words[at] = corpora.vocabulary()[(number * count + k) % 2000]
    return b" ".join(words)


def headline(texts: Texts, number: int) -> bytes:
    """Return the first words of another text, 40 to 60 bytes."""
    text = texts[number % len(texts)][:60]
    return text[: text.rfind(b" ", 40)] if b" " in text[40:] else text


EDITS = {
    "one word replaced": lambda text, number, others: words_replaced(text, 1, number),
    "five words replaced": lambda text, number, others: words_replaced(text, 5, number),
    "a headline in front": lambda text, number, others: headline(others, number + 1) + b" " + text,
    "in capitals": lambda text, number, others: text.upper(),
}


def edits(news: Texts) -> Iterator[dict[str, Any]]:
    """Yield the median similarity of texts and their edited copies."""
    for size in SIZES:
        chosen = [text for text in news if 0.9 * size <= len(text) <= 1.1 * size and text.isascii()][:MOST_EDITED]
        for name, edit in EDITS.items():
            copies = [edit(text, number, chosen) for number, text in enumerate(chosen)]
            medians = {
                name_of(shingles): statistics.median(
                    lsh.jaccard(text, copy, shingles=shingles) for text, copy in zip(chosen, copies)
                )
                for shingles in SHINGLES
            }
            yield {"size": size, "edit": name, "texts": len(chosen), "medians": medians}


# ---- thresholds, titles, scripts ----


def by_threshold(texts: Texts) -> Iterator[dict[str, Any]]:
    """Yield what a threshold removes, and how many pairs it compares, with 128 and 256 components."""
    for threshold in THRESHOLDS:
        for num_seeds in (128, 256):
            summary = lsh.deduplicate(texts, threshold, num_seeds=num_seeds).summary()
            keys = ("documents", "removed", "candidates", "compared")
            yield {"threshold": threshold, "num_seeds": num_seeds, **{key: summary[key] for key in keys}}


def records(name: str) -> list[dict[str, Any]]:
    """Return the records of a corpus of JSON lines."""
    folder = harness.data_folder()
    if folder is None:
        raise SystemExit(f"no file {name}; set LSH_DATA to the folder that holds it")
    with gzip.open(folder / name) as file:
        return [json.loads(line) for line in file]


def marked_records() -> Iterator[dict[str, Any]]:
    """Yield how many bibliographic records have a similar one, of those that people marked as duplicates and others."""
    found = records("refs_respiratory.jsonl.gz")
    marked = np.array([record["duplicate"] == 1 for record in found])
    for field in ("text", "title"):
        texts = [record[field] for record in found]
        for shingles in (lsh.Shingles(8), *(lsh.Shingles(n, **PLAIN) for n in (3, 5, 8))):
            hasher = lsh.MinHasher(CENSUS_SEEDS, scheme="fss", shingles=shingles)
            best = np.zeros(len(texts))
            for i, j, similarity in lsh.find_pairs(texts, THRESHOLDS[0], hasher=hasher, recall=CENSUS_RECALL):
                best[[i, j]] = np.maximum(best[[i, j]], similarity)
            yield {
                "field": field,
                "shingles": name_of(shingles) + (", normalised" if shingles.lowercase else ""),
                "marked": [int((best[marked] >= threshold).sum()) for threshold in THRESHOLDS],
                "others": [int((best[~marked] >= threshold).sum()) for threshold in THRESHOLDS],
                "records": [int(marked.sum()), int((~marked).sum())],
            }


SCRIPTS = {
    "English, news": ("reuters21578.tsv.gz", ""),
    "Chinese, poems": ("multilingual.jsonl.gz", "poem"),
    "Japanese, prose": ("multilingual.jsonl.gz", "aozora"),
    "Chinese, help pages": ("multilingual.jsonl.gz", "tldr/zh"),
    "Thai, help pages": ("multilingual.jsonl.gz", "tldr/th"),
    "Korean, help pages": ("multilingual.jsonl.gz", "tldr/ko"),
    "Arabic, narrations": ("multilingual.jsonl.gz", "hadith/sunan_al-darimi/"),
    "Arabic, the same with vowel marks": ("multilingual.jsonl.gz", "hadith/sunan_al-darimi_vocalised/"),
}


def by_script() -> Iterator[dict[str, Any]]:
    """Yield the length of the runs that count as words, and the similarity if one character differs."""
    for name, (file, prefix) in SCRIPTS.items():
        texts = [text.decode()[:SCRIPT_LENGTH] for text in texts_of(file, prefix)][:SCRIPT_TEXTS]
        copies = [f"{text[: len(text) // 2]}x{text[len(text) // 2 + 1 :]}" for text in texts]
        medians = {
            name_of(shingles): statistics.median(lsh.jaccard(a, b, shingles=shingles) for a, b in zip(texts, copies))
            for shingles in (lsh.Shingles(3), lsh.Shingles(5), lsh.Shingles(8), *SHINGLES[-2:])
        }
        runs = [len(run) for text in texts for run in re.findall(r"\w+", text)]
        row = {"script": name, "texts": len(texts), "characters": statistics.median(map(len, texts))}
        yield {**row, "characters_per_word": statistics.mean(runs), "medians": medians}


def without_marks(text: str) -> str:
    """Return a text without combining marks and signs of direction, and with single spaces."""
    kept = (c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) not in ("Mn", "Cf"))
    return " ".join("".join(kept).split())


def vowel_marks() -> dict[str, Any]:
    """Return the median similarity of narrations to themselves with vowel marks, before and after these are removed."""
    found = {record["id"]: record["text"] for record in records("multilingual.jsonl.gz")}
    start = "hadith/sunan_al-darimi/"
    pairs = [
        (text, found[doc_id.replace("darimi/", "darimi_vocalised/")])
        for doc_id, text in found.items()
        if doc_id.startswith(start)
    ]
    ways = {"as they are": lambda text: text, "marks removed": without_marks}
    medians = {
        way: statistics.median(lsh.jaccard(change(a), change(b)) for a, b in pairs) for way, change in ways.items()
    }
    return {"pairs": len(pairs), "medians": medians}


# ---- the tables of docs/choosing.md ----


def short(shingles: str) -> str:
    """Return the name of shingles with a shorter word for characters, as tables are wide."""
    return shingles.replace("characters", "chars")


def edit_table(result: Result) -> str:
    """Return the median similarity that each edit leaves, by length of the text and by shingles."""
    rows = [
        [f"{row['size']:,} bytes: {row['edit']}", *(f"{row['medians'][shingles]:.2f}" for shingles in EDITED)]
        for row in result["edits"]
    ]
    return table(["text and edit", *map(short, EDITED)], rows)


def corpus_table(result: Result) -> str:
    """Return the pairs of each corpus by similarity, and the removals, by shingles."""
    bounds = result["bounds"]
    ranges = [f"{low:g} to {high:g}" for low, high in pairwise(bounds)]
    rows = [
        [
            f"{name.partition(' (')[0]}: {short(row['shingles'])}",
            *(f"{count:,}" for count in row["counts"]),
            f"{row['removed']:,}",
            f"{row['compared']:,}",
            f"{row['recall']:.4f}",
        ]
        for name, found in result["corpora"].items()
        for row in found["shingles"]
        if row["shingles"] in SHOWN
    ]
    sizes = ", ".join(f"{name}: {found['documents']:,}" for name, found in result["corpora"].items())
    head = ["corpus: shingles", *ranges, "1", "removed", "compared", "recall"]
    return f"Documents: {sizes}.\n\n{table(head, rows)}"


def threshold_table(result: Result) -> str:
    """Return what each threshold removes and compares."""
    rows = [
        [f"{row['threshold']:g}, {row['num_seeds']} components"] + [f"{row[key]:,}" for key in ("removed", "compared")]
        for row in result["thresholds"]
    ]
    return table(["threshold", "removed", "compared exactly"], rows)


def record_table(result: Result) -> str:
    """Return the share of marked and of other records that have a similar record."""
    rows = []
    for row in result["records"]:
        shares = [
            f"{marked / row['records'][0]:.0%}, {others / row['records'][1]:.0%}"
            for marked, others in zip(row["marked"], row["others"])
        ]
        rows.append([f"{FIELDS[row['field']]}: {short(row['shingles'])}", *shares])
    return table(["compared, shingles", *(f"{threshold:g}" for threshold in THRESHOLDS)], rows)


def script_table(result: Result) -> str:
    """Return the similarity that one changed character leaves, by script."""
    rows = [
        [row["script"], f"{row['characters_per_word']:.1f}", *(f"{median:.2f}" for median in row["medians"].values())]
        for row in result["scripts"]
    ]
    return table(["texts", "characters of a word", *map(short, result["scripts"][0]["medians"])], rows)


SHOWN = ("5 characters", "8 characters", "24 characters", "5 words")
EDITED = ("3 characters", "5 characters", "8 characters", "24 characters", "3 words", "5 words")
FIELDS = {"text": "title, authors, journal", "title": "title"}
TABLES = {
    "choosing: edits": edit_table,
    "choosing: corpora": corpus_table,
    "choosing: thresholds": threshold_table,
    "choosing: records": record_table,
    "choosing: scripts": script_table,
}


def main() -> None:
    options = harness.parser(__doc__).parse_args()
    texts = all_texts()
    found = {name: [pairs_by_shingles(of, shingles) for shingles in SHINGLES] for name, of in texts.items()}
    news = next(iter(texts.values()))
    for name, rows in found.items():
        harness.must(all(row["removed"] <= row["candidates"] + row["documents"] for row in rows), name)
        harness.must(all(row["recall"] >= 0.97 for row in rows), f"the recall of {name}")
    result = {
        "data": {"name": "corpora of LSH_DATA", "bytes": sum(len(text) for of in texts.values() for text in of)},
        "threshold": THRESHOLD,
        "bounds": BOUNDS,
        "corpora": {
            name: {"documents": len(texts[name]), "bytes": sum(map(len, texts[name])), "shingles": rows}
            for name, rows in found.items()
        },
        "edits": list(edits(news)),
        "thresholds": list(by_threshold(news)),
        "records": list(marked_records()),
        "scripts": list(by_script()),
        "vowel_marks": vowel_marks(),
    }
    harness.write("choosing", result, options.folder)


if __name__ == "__main__":
    main()
