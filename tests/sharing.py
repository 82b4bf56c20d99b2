"""Objects that many threads share: each thread gets what one thread gets alone.

Run as a script (``python sharing.py [THREADS [TURNS [SEED]]]``), the threads are the first users of the library in this
process, so that they also share what it makes at its first use; the results are compared at the end. On a Python
without a GIL the threads really run at once. test_threads.py runs both the script and `compare`.
"""

import pickle
import random
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

import lsh
from lsh import Cache, MinHasher, Shingles
from lsh.store.index import Index

WORDS = ("otter", "heron", "badger", "weasel", "Élan", "naïve", "漢字", "straße", "river", "the", "a", "of", "by")
Job = Callable[[], object]


def make_texts(seed: int, count: int) -> list[str]:
    """Texts of many lengths; every third one is like an earlier one, and every ninth is equal to one."""
    draw, texts = random.Random(seed), list[str]()
    for number in range(count):
        if number % 9 == 8:
            texts.append(texts[draw.randrange(number)])
        elif number % 3 == 2:
            words = texts[draw.randrange(number)].split(" ")
            words[draw.randrange(len(words))] = draw.choice(WORDS)
            texts.append(" ".join(words))
        else:
            texts.append(" ".join([*draw.choices(WORDS, k=draw.choice([0, 2, 12, 30, 60, 400])), f"of {number}"]))
    return texts


def together(jobs: Iterable[Job], timeout: float = 200.0) -> None:
    """Run each job in a thread, all started at the same time; raise the first error."""
    jobs = list(jobs)
    gate, errors = threading.Barrier(len(jobs), timeout=timeout), list[BaseException]()

    def run(job: Job) -> None:
        try:
            gate.wait()
            job()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def told(found: lsh.engine.dedup.Deduplication) -> tuple[object, ...]:
    """All results of a run as plain values."""
    clusters = [members.tolist() for members in found.clusters()]
    return found.keep.tolist(), found.removed.tolist(), found.near.tolist(), found.labels.tolist(), clusters


def hashing_jobs(texts: list[str]) -> dict[str, Job]:
    """Hashers, shingles and plans, which are immutable."""
    words = Shingles(2, "word", lowercase=True, strip_punctuation=True, normalize="NFKC")
    fss = MinHasher(64, scheme="fss", shingles=Shingles(4))
    murmur = MinHasher(40, 4)
    short = MinHasher(24, hashbytes=4, shingles=words)
    rows = np.random.RandomState(1).randint(0, 9, (60, 64)).astype(np.uint32)
    some = [text[:80] for text in texts[:60]]
    return {
        "fss": lambda: fss.fingerprints(texts, num_threads=3).tobytes(),
        "murmur3": lambda: murmur.fingerprints(texts[:100], num_threads=2).tobytes(),
        "words": lambda: short.fingerprints(texts[:100], num_threads=1).tobytes(),
        "one by one": lambda: [fss.fingerprint(text).tobytes() for text in texts[:50]],
        "merge": lambda: murmur.merge(*map(murmur.fingerprint, some[:2])).tobytes(),
        "similarities": lambda: fss.similarities(rows).tobytes(),
        "jaccard": lambda: [fss.jaccard(*some[i : i + 2]) for i in range(20)],
        "exact jaccard": lambda: lsh.jaccard_matrix(some, shingles=words).tobytes(),
        "shingles": lambda: [sorted(words.of(text)) for text in some],
        "plan": lambda: repr(lsh.plan(0.7, 0.95)),
        "seeds": lambda: MinHasher(30, random_state=7).seed_values.tobytes(),
        "pickle": lambda: pickle.loads(pickle.dumps(short)).fingerprints(some).tobytes(),
    }


def corpus_jobs(texts: list[str]) -> dict[str, Job]:
    """Whole runs, and one result that threads share."""
    settings: dict[str, Any] = {"shingles": Shingles(4), "num_seeds": 64}
    shared: list[lsh.engine.dedup.Deduplication] = []

    def shared_result() -> tuple[object, ...]:
        if not shared:
            shared.append(lsh.deduplicate(texts, 0.8, **settings))
        return told(shared[0])

    def runs(threads: int, **more: Any) -> Job:
        return lambda: told(lsh.deduplicate(texts, 0.7, num_threads=threads, **settings, **more))

    return {
        "deduplicate": runs(1),
        "deduplicate in threads": runs(3),
        "components": runs(2, clusters="components"),
        "last": runs(2, keep="last", verify="sketch"),
        "against": runs(2, against=texts[::7]),
        "bounded": runs(2, max_memory="40 MB"),
        "pairs": lambda: list(lsh.find_pairs(texts, 0.6, num_threads=2, **settings)),
        "pairs of two": lambda: list(lsh.find_pairs(texts[:90], 0.6, others=texts[90:], num_threads=2, **settings)),
        "a shared result": shared_result,
    }


def store_jobs(texts: list[str], folder: Path) -> dict[str, Job]:
    """Questions to a cache, and to an index that is open for reading."""
    hasher = MinHasher(48, scheme="fss", shingles=Shingles(4))
    cache = Cache(hasher, num_bands=12)
    cache.add_docs(texts, range(len(texts)))
    with Index.create(folder / "read", hasher, threshold=0.7, recall=0.9, texts="stored") as index:
        for first in range(0, len(texts), 50):  # segments, and a log
            index.add_docs(texts[first : first + 50], range(first, min(first + 50, len(texts))))
            index.commit()
        index.remove_ids(range(0, len(texts), 11))
        index.commit()
    reader = Index.open(folder / "read")
    asked = texts[::5]
    return {
        "cache, one": lambda: [cache.query(text) for text in asked],
        "cache, many": lambda: cache.query_docs(asked),
        "cache, all": lambda: sorted(cache.get_all_duplicates()),
        "cache, bins": lambda: [sorted((key, tuple(ids)) for key, ids in band.items()) for band in cache.bins],
        "cache, rows": lambda: {doc: row.tobytes() for doc, row in cache.fingerprints.items()},
        "index, one": lambda: [tuple(reader.query(text, top=3)) for text in asked],
        "index, many": lambda: [tuple(found) for found in reader.query_docs(asked)],
        "index, texts": lambda: [(doc, reader.text_of(doc)) for doc in reader],
        "index, pairs": lambda: list(reader.find_pairs(num_threads=2)),
        "index, against": lambda: told(lsh.deduplicate(asked, 0.7, hasher=hasher, against=reader, num_threads=2)),
        "index, refresh": lambda: (reader.refresh(), len(reader), 3 in reader),
    }


def compare(jobs: dict[str, Job], threads: int, turns: int, seed: int) -> None:
    """Run all jobs in each thread, each time in another order, and afterwards alone."""
    results: list[tuple[str, object]] = []

    def work(number: int) -> None:
        names, draw = list(jobs), random.Random(seed + number)
        for _ in range(turns):
            draw.shuffle(names)
            for name in names:
                results.append((name, jobs[name]()))

    together([lambda number=number: work(number) for number in range(threads)])  # type: ignore[misc]
    expected = {name: job() for name, job in jobs.items()}
    wrong = sorted({name for name, result in results if result != expected[name]})
    if wrong or len(results) != threads * turns * len(jobs):
        raise AssertionError(f"threads got other results than one thread alone: {wrong}")


def change_cache(texts: list[str], threads: int, rounds: int) -> None:
    """Each thread adds, replaces and removes documents of its own, and asks; at the end all are stored."""
    cache, alone = (Cache(MinHasher(24, 4, hashbytes=4)) for _ in range(2))

    def change(which: int, cache: Cache) -> None:
        own = texts[which::threads]
        for turn in range(rounds):
            text = own[turn % len(own)]
            cache.add_doc(text, (which, turn))
            cache.add_docs(own[:4], [(which, turn, i) for i in range(4)])
            found = cache.query(text, min_similarity=1.0)
            if text.split()[2:] and (which, turn) not in [match.id for match in found]:
                raise AssertionError(f"the document ({which}, {turn}) is not found: {found}")
            for i in (1, 3):
                cache.remove_id((which, turn, i))
            if turn % 5 == 4:
                cache.add_doc(own[0], (which, turn - 1))  # in place of another text
            cache.is_duplicate(text)
            len(cache.bins[turn % cache.num_bands])

    for which in range(threads):
        change(which, alone)
    together([lambda which=which: change(which, cache) for which in range(threads)])  # type: ignore[misc]
    rows = [{doc: row.tobytes() for doc, row in one.fingerprints.items()} for one in (cache, alone)]
    bins = [[{key: set(ids) for key, ids in band.items()} for band in one.bins] for one in (cache, alone)]
    if rows[0] != rows[1] or bins[0] != bins[1]:
        raise AssertionError("the cache differs from that of one thread")


def change_index(texts: list[str], threads: int, rounds: int, folder: Path) -> None:
    """Threads change one index, each its own documents, and commit; others read it through one reader."""
    hasher = MinHasher(32, scheme="fss", shingles=Shingles(4))
    index = Index.create(folder / "shared", hasher, threshold=0.8, recall=0.9, texts="stored")
    reader, working = Index.open(folder / "shared"), [None] * threads

    def text_of(name: str) -> str:
        which, turn, *rest = map(int, name.split("."))
        own = texts[which::threads]
        return own[rest[0] if rest else turn % len(own)]

    def change(which: int) -> None:
        try:
            own = texts[which::threads]
            for turn in range(rounds):
                text = own[turn % len(own)]
                index.add(text, f"{which}.{turn}")
                index.add_docs(own[:3], [f"{which}.{turn}.{i}" for i in range(3)])
                index.remove(f"{which}.{turn}.1")
                if index.text_of(f"{which}.{turn}") != text.encode() or f"{which}.{turn}.1" in index:
                    raise AssertionError(f"the index does not hold what a thread added: {which}.{turn}")
                index.query(text, top=5)
                if turn % 4 == 3:
                    index.commit()
        finally:
            working.pop()

    def read(which: int) -> None:
        while working:
            reader.refresh()
            for text, found in zip(texts[which::7], reader.query_docs(texts[which::7])):
                for id, similarity, *_ in found[:3]:
                    if similarity != lsh.jaccard(text, text_of(str(id)), shingles=hasher.shingles):
                        raise AssertionError(f"the similarity {similarity} with {id} is wrong")
            lsh.deduplicate(texts[:30], 0.8, hasher=hasher, against=reader, num_threads=1)

    writers = [lambda which=which: change(which) for which in range(threads)]  # type: ignore[misc]
    together([*writers, *(lambda which=which: read(which) for which in range(threads))])  # type: ignore[misc]
    index.commit()
    reader.refresh()
    ids = [f"{which}.{turn}{rest}" for which in range(threads) for turn in range(rounds) for rest in ("", ".0", ".2")]
    expected = {name: text_of(name).encode() for name in ids}
    index.verify()
    for one in (index, reader):
        if {doc: one.text_of(str(doc)) for doc in one} != expected:
            raise AssertionError("the index does not hold what the threads added")
    with Index.create(folder / "alone", hasher, threshold=0.8, recall=0.9, texts="stored") as alone:
        alone.add_docs(list(expected.values()), list(expected))
        pairs = [{(frozenset((a, b)), s) for a, b, s in one.find_pairs()} for one in (alone, reader)]
    if pairs[0] != pairs[1]:
        raise AssertionError("the pairs of the index differ from those of one thread")
    index.close()


def main(threads: int = 8, turns: int = 2, seed: int = 0) -> None:
    """Let the threads be the first users of everything, then change what they share."""
    sys.setswitchinterval(1e-5)  # where there is a GIL, it goes round often
    texts = make_texts(seed, 240)
    with tempfile.TemporaryDirectory() as name:
        compare({**hashing_jobs(texts), **corpus_jobs(texts)}, threads, turns, seed)
        compare(store_jobs(texts, Path(name)), threads, turns, seed)
        change_cache(texts, threads, 20 * turns)
        change_index(texts, max(threads // 2, 1), 8 * turns, Path(name))
    print("equal")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
