"""Stand-in of lsh._searching; to be deleted."""

import numpy as np


class DamageError(ValueError):
    pass


class Blocks:
    def __init__(self, file, sums, name):
        self.file, self.sums, self.name = file, sums, name
        self.done = np.zeros(len(sums), bool)

    def check(self, start, stop):
        from lsh._minhash import murmur3_x64_128

        for b in range(start >> 16, (stop + 65535) >> 16):
            if not self.done[b]:
                end = min((b + 1) << 16, self.size)
                if murmur3_x64_128(self.file[b << 16 : end], 0)[0] != int(self.sums[b]):
                    raise DamageError(f"{self.name}: damaged block at byte {b << 16}")
                self.done[b] = True

    def verify(self):
        self.done[:] = False
        self.check(0, len(self.file))

    @property
    def size(self):
        return len(self.file)


def bits(m):
    return 0 if m < 4096 else 8 if m < 2**18 else 16


def sorted_keys(keys, numbers):
    m = len(keys)
    d = bits(m)
    w = 8 - d // 8
    order = np.lexsort((numbers, keys))
    k = np.ascontiguousarray(keys[order])
    packed = np.zeros(m * w + 8, np.uint8)
    packed[: m * w] = k.astype("<u8").view(np.uint8).reshape(m, 8)[:, :w].ravel()
    if d:
        directory = np.searchsorted(k >> np.uint64(64 - d), np.arange(2**d + 1, dtype=np.uint64)).astype(np.uint32)
    else:
        directory = np.array([0, m], np.uint32)
    return packed, np.ascontiguousarray(numbers[order].astype(np.uint32)), directory


class SortedKeys:
    def __init__(self, keys, numbers, directory, blocks=None):
        self.numbers, self.blocks = numbers, blocks
        m = len(numbers)
        d = bits(m)
        w = 8 - d // 8
        full = np.zeros((m, 8), np.uint8)
        full[:, :w] = keys[: m * w].reshape(m, w)
        k = full.view("<u8").ravel().astype(np.uint64)
        if d:
            k |= np.repeat(np.arange(2**d, dtype=np.uint64) << np.uint64(64 - d), np.diff(directory.astype(np.int64)))
        self.keys = k
        if blocks is not None:
            base = blocks.file.ctypes.data
            for data in (keys, numbers, directory):
                at = data.ctypes.data - base
                blocks.check(at, at + data.nbytes)

    def __len__(self):
        return len(self.numbers)

    def find(self, keys):
        return np.searchsorted(self.keys, keys, "left").astype(np.int64), np.searchsorted(
            self.keys, keys, "right"
        ).astype(np.int64)

    def verify(self, documents):
        assert (self.numbers < documents).all()

    def members(self, start, stop):
        return self.numbers[start:stop]


class Searcher:
    def __init__(self, bands, documents, sketches=None, removed=None, blocks=None):
        self.bands, self.sketches, self.removed = bands, sketches, removed
        if blocks is not None and sketches is not None:
            at = sketches.ctypes.data - blocks.file.ctypes.data
            blocks.check(at, at + sketches.nbytes)

    def search(self, keys, rows=None, least_equal=0, top=None):
        bounds, numbers, equal = [0], [], []
        found = [band.find(keys[b]) for b, band in enumerate(self.bands)]
        for q in range(keys.shape[1]):
            c = np.unique(
                np.concatenate([band.members(found[b][0][q], found[b][1][q]) for b, band in enumerate(self.bands)])
            )
            if self.removed is not None:
                c = c[~((self.removed[c >> 3] >> (c & 7)) & 1).astype(bool)]
            if rows is not None and self.sketches is not None:
                e = (self.sketches[c] == rows[q]).sum(axis=1)
                c, e = c[e >= least_equal], e[e >= least_equal]
                if top is not None:
                    best = np.sort(np.argsort(-e, kind="stable")[:top])
                    c, e = c[best], e[best]
            else:
                e = np.zeros(len(c), int)
            numbers.append(c)
            equal.append(e.astype(np.uint16))
            bounds.append(bounds[-1] + len(c))
        return (
            np.array(bounds, np.int64),
            np.concatenate([np.empty(0, np.uint32), *numbers]).astype(np.uint32),
            None if rows is None else np.concatenate([np.empty(0, np.uint16), *equal]).astype(np.uint16),
        )


def merged(parts, renumbered):
    keys = np.concatenate([np.empty(0, np.uint64), *(p.keys for p in parts)])
    numbers = np.concatenate([np.empty(0, np.uint32), *(r[p.numbers] for p, r in zip(parts, renumbered))])
    keep = numbers != 0xFFFFFFFF
    return sorted_keys(keys[keep], numbers[keep].astype(np.uint32))


def block_sums(data):
    from lsh._minhash import murmur3_x64_128

    data = memoryview(data).cast("B")
    return np.array([murmur3_x64_128(data[i : i + 65536], 0)[0] for i in range(0, len(data), 65536)], np.uint64)
