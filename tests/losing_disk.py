"""A disk for tests of an index: operations fail or the process ends at a given one, and unsynced changes may be lost.

The operations are made on a real folder, and `LosingDisk` notes what of them was synced. `survivors` writes what may be
left after a loss of power into another folder: the content of each file at its last sync, with any part of the later
writes, under the names at the last sync of the folder, with any of the later changes of names.
"""

import errno
import os
import random
from pathlib import Path
from typing import Any

from lsh.segments.disk import Disk, DiskFile


class CrashError(BaseException):
    """The process ends here; like a signal, it is no Exception that code would handle."""


class Content:
    """What is known about one file: its synced content, and the changes since."""

    def __init__(self) -> None:
        self.synced = b""
        self.changes: list[tuple[int, bytes | None]] = []  # (offset, data), or (size, None) for a cut

    def survivor(self, rng: random.Random) -> bytes:
        """Any content that may be left."""
        content = bytearray(self.synced)
        for at, data in self.changes:
            fate = rng.choice(["kept", "kept", "part", "lost"])
            if fate == "lost":
                continue
            if data is None:
                del content[at:]
                continue
            kept = data if fate == "kept" else data[: rng.randint(0, len(data))]
            if len(content) < at:
                content += bytes(at - len(content))
            content[at : at + len(kept)] = kept
        return bytes(content)


class LosingFile(DiskFile):
    """A file of a `LosingDisk`."""

    def __init__(self, disk: "LosingDisk", path: str, file: DiskFile, content: Content) -> None:
        super().__init__(file._descriptor, file.size, path)
        self.disk, self.path, self.content = disk, path, content

    def _write_some(self, data: memoryview, offset: int) -> int:
        try:
            self.disk.step("write", self.path)
        except BaseException:
            self._note(data[: len(data) // 2], offset)  # as much as a full disk had space for
            raise
        return self._note(data, offset)

    def _note(self, data: memoryview, offset: int) -> int:
        done = super()._write_some(data, offset)
        self.content.changes.append((offset, bytes(data[:done])))
        return done

    def cut(self, size: int) -> None:
        self.disk.step("cut", self.path)
        super().cut(size)
        self.content.changes.append((size, None))

    def sync(self) -> None:
        self.disk.step("sync", self.path)
        self.content.synced, self.content.changes = Path(self.path).read_bytes(), []


class LosingDisk(Disk):
    """A disk whose operation number `fails_at` raises an OSError, or after which nothing happens (`ends_at`).

    Number 1 is the first operation that changes anything.
    """

    def __init__(self, fails_at: int = 0, ends_at: int = 0, number: int = errno.EIO) -> None:
        self.fails_at, self.ends_at, self.number = fails_at, ends_at, number
        self.count = 0
        self.steps: list[str] = []
        self.names: dict[str, Content] = {}
        self.synced: dict[str, Content] = {}
        self.changes: list[tuple[str, str, Any]] = []  # of names, since the last sync of the folder

    def step(self, what: str, path: str) -> None:
        """Count an operation, which may fail."""
        self.count += 1
        self.steps.append(f"{what} {os.path.basename(path)}")
        if self.ends_at and self.count >= self.ends_at:
            raise CrashError
        if self.count == self.fails_at:
            raise OSError(self.number, os.strerror(self.number), path)

    def create(self, path: str) -> DiskFile:
        self.step("create", path)
        content = self.names[os.path.basename(path)] = Content()
        self.changes.append(("create", os.path.basename(path), content))
        return LosingFile(self, path, super().create(path), content)

    def open(self, path: str) -> DiskFile:
        self.step("open", path)
        name = os.path.basename(path)
        if name not in self.names:
            self.names[name] = self.synced[name] = Content()
            self.names[name].synced = Path(path).read_bytes()
        return LosingFile(self, path, super().open(path), self.names[name])

    def rename(self, source: str, target: str) -> None:
        self.step("rename", target)
        super().rename(source, target)
        old, new = os.path.basename(source), os.path.basename(target)
        self.names[new] = self.names.pop(old)
        self.changes.append(("rename", old, new))

    def remove(self, path: str) -> None:
        self.step("remove", path)
        super().remove(path)
        self.names.pop(os.path.basename(path), None)
        self.changes.append(("remove", os.path.basename(path), None))

    def sync_folder(self, path: str) -> None:
        self.step("sync folder", path)
        if any(os.path.exists(os.path.join(path, name)) for name in self.names):  # else it is another folder
            self.synced, self.changes = dict(self.names), []

    def know(self, folder: Path) -> None:
        """Count what is in a folder as synced."""
        for path in folder.iterdir():
            self.names[path.name] = self.synced[path.name] = Content()
            self.names[path.name].synced = path.read_bytes()

    def survivors(self, folder: Path, rng: random.Random) -> None:
        """Write what may be left after a loss of power into a new folder."""
        names = dict(self.synced)
        for kind, name, other in self.changes:
            if rng.random() < 0.5:
                continue
            if kind == "create":
                names[name] = other
            elif kind == "remove":
                names.pop(name, None)
            elif name in names:
                names[other] = names.pop(name)
        folder.mkdir()
        for name, content in names.items():
            (folder / name).write_bytes(content.survivor(rng))
