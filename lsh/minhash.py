"""MinHash fingerprints, as mattilyra/LSH names them: ``from lsh.minhash import MinHasher``. See `lsh.MinHasher`."""

from lsh.sketch.hasher import MinHasher

__all__ = ["MinHasher"]
