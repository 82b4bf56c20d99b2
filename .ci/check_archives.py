"""Check the contents of the sdist and the wheel: `python check_archives.py DIST_FOLDER FILES`.

FILES lists the files of the repository, one per line. The sdist must contain all of them except paths that begin with
a dot, and no generated files. The wheel must contain the Python modules, the stubs, `py.typed` and the file of the
compiled modules, but no C or Cython source, and must not be larger than MAX_WHEEL.
"""

import re
import sys
import tarfile
import zipfile
from pathlib import Path

SOURCES = {".c", ".h", ".cpp", ".pyx", ".pxd"}
MAX_WHEEL = 900_000  # bytes, on x86-64 with three levels of kernels; more than half of it are Python modules
METADATA = re.compile(r"PKG-INFO|setup\.cfg|[^/]+\.egg-info/.*")


def only(folder: Path, pattern: str) -> Path:
    found = list(folder.glob(pattern))
    if len(found) != 1:
        raise SystemExit(f"expected one file {pattern} in {folder}, got {len(found)}")
    return found[0]


def faults_of_sdist(archive: Path, files: set[str]) -> list[str]:
    with tarfile.open(archive) as sdist:
        held = {member.name.partition("/")[2] for member in sdist.getmembers() if member.isfile()}
    needed = {name for name in files if not name.startswith(".")}
    added = {name for name in held - files if not METADATA.fullmatch(name)}
    return [f"missing in the sdist: {name}" for name in needed - held] + [
        f"unexpected in the sdist: {name}" for name in added
    ]


def faults_of_wheel(archive: Path, files: set[str]) -> list[str]:
    with zipfile.ZipFile(archive) as wheel:
        held = set(wheel.namelist())
        metadata = wheel.read(next(name for name in held if name.endswith(".dist-info/METADATA"))).decode()
        scripts = wheel.read(next(name for name in held if name.endswith(".dist-info/entry_points.txt"))).decode()
    package = {name for name in files if re.fullmatch(r"lsh/([\w/]+\.(pyi?|css|js)|py\.typed)", name)}
    built = {name.partition(".")[0] for name in held if name.endswith((".so", ".pyd"))}
    required = [line for line in metadata.splitlines() if line.startswith("Requires-Dist:") and "extra ==" not in line]
    faults = [f"missing in the wheel: {name}" for name in package - held]
    faults += [f"unexpected in the wheel: {name}" for name in held if Path(name).suffix in SOURCES]
    faults += [
        f"unexpected in the wheel: {name}" for name in held if not re.match(r"lsh/|lsh_dedup-[^/]*\.dist-info/", name)
    ]
    if archive.stat().st_size > MAX_WHEEL:
        faults.append(f"the wheel has {archive.stat().st_size:,} bytes, expected at most {MAX_WHEEL:,}")
    if built != {"lsh/_lsh_cython"}:
        faults.append(f"the wheel has the compiled files {sorted(built)}, expected lsh/_lsh_cython")
    if not any(name.endswith("LICENSE") for name in held):
        faults.append("missing in the wheel: LICENSE")
    if {re.match(r"Requires-Dist: (\w+)", line)[1] for line in required} != {"numpy"}:
        faults.append(f"the wheel must require numpy only, got {required}")
    faults += [
        f"missing in the wheel: the command {name}" for name in ("lsh", "lsh-dedup") if f"{name} =" not in scripts
    ]
    return faults


if __name__ == "__main__":
    folder, listing = map(Path, sys.argv[1:])
    names = set(listing.read_text(encoding="utf-8").splitlines())
    sdist, wheel = only(folder, "*.tar.gz"), only(folder, "*.whl")
    faults = faults_of_sdist(sdist, names) + faults_of_wheel(wheel, names)
    print(*(faults or [f"the contents of {sdist.name} and {wheel.name} are complete"]), sep="\n")
    raise SystemExit(bool(faults))
