"""The compiled modules; everything else about the distribution is in pyproject.toml."""

import os
import sys
from pathlib import Path

from Cython.Build import cythonize
from Cython.Compiler import Options
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.modified import newer_group

# All of these are linked into one file, where `lsh/base/compiled.py` lets Python find the modules.
MODULES = sorted(path.as_posix() for path in Path("lsh").rglob("*.pyx"))
KERNELS = sorted(path.as_posix() for path in Path("lsh").rglob("*.c"))
WRITTEN = "build/cython"  # where Cython writes C, apart from the hand-written
HEADERS = sorted(path.as_posix() for path in Path("lsh").rglob("*.h"))

# The compiler's own flags come first; LSH_BUILD_FLAGS lets a checked build (sanitizers, -Werror) add its own.
# Microsoft's compiler builds C11 with its own optimisation.
FLAGS = ["-std=c11", "-g0", "-fvisibility=hidden", "-ffunction-sections", "-fdata-sections"]
MICROSOFT_FLAGS = ["/std:c11"]
# Optimisation of the hand-written C, whose loops say where they are to be unrolled, and of the modules that Cython
# writes: these spend their time in the hand-written C, or are as fast either way.
OF_KERNELS, OF_MODULES = ["-O2", "-ftree-vectorize"], ["-Os"]
# What Cython writes: strings that only the wheel compresses, and calls of Python in place of copies of its internals,
# which are larger and gain nothing here.
MACROS = {
    "CYTHON_COMPRESS_STRINGS": "0",
    "CYTHON_FAST_THREAD_STATE": "0",
    "CYTHON_UNPACK_METHODS": "0",
    "CYTHON_USE_DICT_VERSIONS": "0",
    "CYTHON_USE_FREELISTS": "0",
    "CYTHON_USE_PYLIST_INTERNALS": "0",
    "CYTHON_USE_PYLONG_INTERNALS": "0",
    "CYTHON_USE_UNICODE_INTERNALS": "0",
    "CYTHON_VECTORCALL_TPNEW": "0",
}
Options.docstrings = False  # the modules are private; their docstrings are for readers of the source
OWN_FLAGS = os.environ.get("LSH_BUILD_FLAGS", "").split()
LINK_FLAGS = [flag for flag in OWN_FLAGS if flag.startswith("-fsanitize")]
FOR_USE = sys.platform == "linux" and "-g" not in OWN_FLAGS
if FOR_USE:
    # Without symbols and tables that only a debugger reads, unused functions, and stubs for calls of Python.
    FLAGS += ["-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-fno-plt", "-fno-ident"]
    LINK_FLAGS += ["-Wl,--strip-all", "-Wl,--gc-sections", "-Wl,--build-id=none", "-Wl,-z,noseparate-code"]


class BuildExtensions(build_ext):
    """Compile the kernels with other flags than the C that Cython writes."""

    def build_extensions(self):
        if self.compiler.compiler_type == "msvc":
            for one in self.extensions:
                one.extra_compile_args = [*MICROSOFT_FLAGS, *OWN_FLAGS]
                one.extra_link_args = []
        elif hasattr(self.compiler, "_compile"):  # one file; gcc, clang, MinGW
            compile_file = self.compiler._compile
            of_modules = OF_MODULES
            if FOR_USE and "gcc" in Path(self.compiler.compiler_so[0]).name:
                # What the modules have in common is kept once. clang would need a linker of its own for this. A
                # function with one caller is smaller apart, too.
                of_modules = [*OF_MODULES, "-flto", "-fno-inline-functions-called-once"]
                for one in self.extensions:
                    one.extra_link_args += ["-flto-partition=one"]

            def compile_one(target, source, ending, arguments, flags, options):
                if newer_group([source, *HEADERS, "setup.py"], target):
                    level = of_modules if Path(source).is_relative_to(WRITTEN) else OF_KERNELS
                    compile_file(target, source, ending, arguments, [*level, *flags], options)

            self.compiler._compile = compile_one
        super().build_extensions()


# What Cython needs for memoryviews, once for all modules instead of in each; it writes the source itself. The name has
# the package in it twice, as Cython enters such a module under its last part into sys.modules, too.
SHARED = Extension("lsh._lsh_cython", ["lsh/_lsh_cython.c"])
# No class has a state to pickle. Functions are those of C, which are smaller and called faster than Cython's, and one
# with a single argument takes it by position only. What SHARED would have for other ones can be left out since Cython
# 3.3; a function within a function would need it.
DIRECTIVES = {"always_allow_keywords": False, "auto_pickle": False, "binding": False}
WITHOUT = {"shared_utility_features_disabled": ["AutoPickle", "CythonFunction"]}

written = cythonize(
    [*(Extension(name.removesuffix(".pyx").replace("/", "."), [name]) for name in MODULES), SHARED],
    build_dir=WRITTEN,
    shared_utility_qualified_name=SHARED.name,
    compiler_directives=DIRECTIVES,
    **(WITHOUT if WITHOUT.keys() <= Options.default_options.keys() else {}),
)

setup(
    ext_modules=[
        Extension(
            SHARED.name,
            [*(source for module in written for source in module.sources), *KERNELS],
            include_dirs=["lsh"],
            depends=[*HEADERS, "setup.py"],
            define_macros=list(MACROS.items()),
            extra_compile_args=[*FLAGS, *OWN_FLAGS],
            extra_link_args=LINK_FLAGS,
        )
    ],
    cmdclass={"build_ext": BuildExtensions},
)
