"""The extensions; everything else about the distribution is in pyproject.toml."""

import os
import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

# The C files of each extension, within lsh/. Each is in one extension only, which the others reach through its .pxd.
SOURCES = {
    "_columns": [],
    "_batch": ["kernels/utf8.c"],
    "files._fields": ["kernels/json.c", "kernels/cells.c"],
    "_minhash": [
        "_murmur3.c",
        "kernels/shingle.c",
        "kernels/fss.c",
        "kernels/dispatch.c",
        "kernels/baseline.c",
        "kernels/avx2.c",
        "kernels/avx512.c",
        "kernels/neon.c",
    ],
    "_sets": [],
    "_grouping": ["kernels/grouping.c"],
    "_comparing": [],
    "_deciding": [],
    "_searching": ["kernels/search.c"],
}
HEADERS = sorted(path.as_posix() for path in Path("lsh").rglob("*.h"))

# The compiler's own flags come first; LSH_BUILD_FLAGS lets a checked build (sanitizers, -Werror) add its own.
FLAGS = [] if os.name == "nt" else ["-std=c11", "-O3", "-g0", "-fvisibility=hidden"]
FLAGS += os.environ.get("LSH_BUILD_FLAGS", "").split()
LINK_FLAGS = [flag for flag in FLAGS if flag.startswith("-fsanitize")]
if sys.platform == "linux" and "-g" not in FLAGS:
    LINK_FLAGS.append("-Wl,--strip-all")  # the symbols that only a debugger reads: a tenth of the size


def extension(name, sources):
    return Extension(
        f"lsh.{name}",
        [f"lsh/{name.replace('.', '/')}.pyx", *(f"lsh/{source}" for source in sources)],
        include_dirs=["lsh"],
        depends=HEADERS,
        extra_compile_args=FLAGS,
        extra_link_args=LINK_FLAGS,
    )


# What Cython needs for memoryviews, once for all modules instead of in each; it writes the source itself. The name has
# the package in it twice, as Cython enters such a module under its last part into sys.modules, too.
SHARED = Extension("lsh._lsh_cython", ["lsh/_lsh_cython.c"], extra_compile_args=FLAGS, extra_link_args=LINK_FLAGS)

setup(
    ext_modules=cythonize(
        [*(extension(name, sources) for name, sources in SOURCES.items()), SHARED],
        build_dir="build/cython",  # keeps generated C apart from the hand-written
        shared_utility_qualified_name=SHARED.name,
    )
)
