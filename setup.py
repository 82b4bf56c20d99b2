"""The extensions; everything else about the distribution is in pyproject.toml."""

import os
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

KERNELS = sorted(path.as_posix() for path in Path("lsh/kernels").glob("*.c"))
HEADERS = sorted(path.as_posix() for path in Path("lsh").rglob("*.h"))

# The compiler's own flags come first; LSH_BUILD_FLAGS lets a checked build (sanitizers, -Werror) add its own.
FLAGS = [] if os.name == "nt" else ["-std=c11", "-O3", "-g0"]
FLAGS += os.environ.get("LSH_BUILD_FLAGS", "").split()
LINK_FLAGS = [flag for flag in FLAGS if flag.startswith("-fsanitize")]


def extension(name, sources=()):
    return Extension(
        f"lsh.{name}",
        [f"lsh/{name.replace('.', '/')}.pyx", *sources],
        include_dirs=["lsh"],
        depends=HEADERS,
        extra_compile_args=FLAGS,
        extra_link_args=LINK_FLAGS,
    )


setup(
    ext_modules=cythonize(
        [
            extension("_columns"),
            extension("_batch", ["lsh/kernels/shingle.c", "lsh/kernels/utf8.c"]),
            extension("files._fields", ["lsh/kernels/json.c", "lsh/kernels/cells.c"]),
            extension("_minhash", ["lsh/_murmur3.c", *KERNELS]),
            extension("_sets", ["lsh/kernels/shingle.c"]),
            extension("_components"),
            extension("_grouping", ["lsh/kernels/grouping.c"]),
            extension("_comparing"),
        ],
        build_dir="build/cython",  # so that no generated C lies beside the hand-written
    )
)
