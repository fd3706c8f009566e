"""The compiled kernels: every .pyx file below pqext, on all processors. All else is in pyproject.toml."""

import os
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext


class BuildKernels(build_ext):
    def build_extensions(self):
        self.parallel = self.parallel or os.cpu_count() or 1
        cythonize(self.extensions, nthreads=self.parallel)  # in processes of their own; the compilers run on threads
        super().build_extensions()


setup(
    cmdclass={"build_ext": BuildKernels},
    ext_modules=[
        Extension(".".join(kernel.with_suffix("").parts), [str(kernel)], extra_compile_args=["-O3", "-g0"])
        for kernel in sorted(Path("pqext").rglob("*.pyx"))
    ],
)
