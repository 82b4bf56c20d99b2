"""What a release consists of, for `.github/workflows/` and `tools/check_wheels.sh`.

python tools/release.py identifiers        print the wheels of a release, as cibuildwheel identifies them
python tools/release.py identify WHEEL     print which of them a file is, by its name
python tools/release.py archives FOLDER    check that a folder has the sdist and these wheels, all of this version
python tools/release.py notes TAG          check that a tag, the version and the changelog agree; print what changed
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTHONS = ("cp310", "cp311", "cp312", "cp313", "cp314", "cp314t", "cp315")
PLATFORMS = (
    *("manylinux_x86_64", "manylinux_aarch64", "musllinux_x86_64", "musllinux_aarch64"),
    *("macosx_x86_64", "macosx_arm64", "win_amd64"),
)
# The parts of a wheel's name: version, Python, ABI, and platforms, each with the version of its C library or system.
WHEEL = re.compile(r"lsh_dedup-([^-]+)-(cp\d+)-(\2t?)-([^-]+)\.whl")
PLATFORM = re.compile(r"(?:(manylinux|musllinux|macosx)(?:\d+|_\d+_\d+)|(win))_(\w+)")
# Where the version stands.
VERSIONS = {
    "pyproject.toml": r'^version = "(.+)"$',
    "lsh/base/version.py": r'^__version__ = "(.+)"$',
    "CITATION.cff": r"^version: (.+)$",
}


def identifiers() -> list[str]:
    """Return the identifiers of all wheels of a release."""
    return [f"{python}-{platform}" for python in PYTHONS for platform in PLATFORMS]


def identifier(name: str, version: str) -> str | None:
    """Return the identifier of a wheel of a version, ``None`` for any other name.

    Examples
    --------
    >>> identifier("lsh_dedup-1.0-cp314-cp314t-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl", "1.0")
    'cp314t-manylinux_x86_64'
    >>> identifier("lsh_dedup-1.0-cp310-cp310-win_amd64.whl", "1.0")
    'cp310-win_amd64'
    """
    found = WHEEL.fullmatch(name)
    if found is None or found[1] != version:
        return None
    platforms = {PLATFORM.sub(r"\1\2_\3", one) for one in found[4].split(".")}
    return f"{found[3]}-{platforms.pop()}" if len(platforms) == 1 else None


def version_of(root: Path = ROOT) -> str:
    """Return the version; all files that have it must have the same one."""
    texts = {name: (root / name).read_text("utf-8") for name in VERSIONS}
    found = {name: re.findall(pattern, texts[name], re.MULTILINE) for name, pattern in VERSIONS.items()}
    versions = {one for ones in found.values() for one in ones}
    if len(versions) != 1 or not all(found.values()):
        raise SystemExit(f"the files have different versions, or none: {found}")
    return str(versions.pop())


def faults_of_archives(names: list[str], version: str) -> Iterator[str]:
    """Yield what is missing, or should not be there, among the files of a release."""
    sdist = f"lsh_dedup-{version}.tar.gz"
    found = Counter(identifier(name, version) or name for name in names)
    expected = {sdist, *identifiers()}
    yield from (f"missing: {one}" for one in sorted(expected - set(found)))
    yield from (f"unexpected: {one}" for one in sorted(set(found) - expected))
    yield from (f"{count} files for {one}" for one, count in sorted(found.items()) if count > 1)


def notes(tag: str, version: str, changelog: str) -> str:
    """Return the section of a version of the changelog, which must be the newest one."""
    if tag != f"v{version}":
        raise SystemExit(f"the tag is {tag}, the version is {version}: expected the tag v{version}")
    _, *sections = re.split(r"^## ", changelog, flags=re.MULTILINE)
    if sections and sections[0].startswith("[Unreleased]\n") and sections.pop(0).partition("\n")[2].strip():
        raise SystemExit(f"CHANGELOG.md has unreleased changes; move them below a heading '## [{version}] - DATE'")
    heading, _, text = sections[0].partition("\n") if sections else ("", "", "")
    if not re.fullmatch(rf"\[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d", heading) or not text.strip():
        raise SystemExit(f"CHANGELOG.md must begin with '## [{version}] - YYYY-MM-DD' and its changes, got '{heading}'")
    return text.strip()


def main(arguments: list[str]) -> int:
    """Run a command."""
    match arguments:
        case ["identifiers"]:
            print(*identifiers(), sep="\n")
        case ["identify", wheel]:
            found = identifier(Path(wheel).name, version_of())
            if found not in identifiers():
                raise SystemExit(f"{Path(wheel).name} is no wheel of a release")
            print(found)
        case ["archives", folder]:
            faults = list(faults_of_archives([path.name for path in Path(folder).iterdir()], version_of()))
            print(*(faults or [f"{folder} has the sdist and {len(identifiers())} wheels"]), sep="\n")
            return bool(faults)
        case ["notes", tag]:
            print(notes(tag, version_of(), (ROOT / "CHANGELOG.md").read_text("utf-8")))
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
