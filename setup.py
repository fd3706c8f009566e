"""Declare the compiled kernels, which build_kernels.py builds. All other settings are in pyproject.toml."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import Cython
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.editable_wheel import editable_wheel

import build_kernels as build


class BuildKernels(build_ext):
    def build_extensions(self):
        flags = build.flags(self.compiler.compiler_type, sys.platform, os.environ.get("PQEXT_KERNEL_FLAGS"))
        commands = [getattr(self.compiler, name, None) or [] for name in ("compiler_so", "linker_so")]
        environment = [[name, os.environ.get(name, "")] for name in ("CL", "_CL_", "LINK", "MACOSX_DEPLOYMENT_TARGET")]
        folder = Path(os.environ.get("PQEXT_KERNEL_CACHE", build.ROOT / "build" / "kernels"))
        tools = build.toolchain(commands[0])
        cache = build.Cache(folder.absolute() / build.folder_name(flags, commands + environment, tools))
        translated = build.Cache(folder.absolute() / "c")  # of use to every compiler and all flags
        kernels = build.kernels()  # all extensions but the shared one
        stamps = {e.name: build.stamp(kernels.get(e.name), Cython.__version__) for e in self.extensions}
        stale = [e for e in self.extensions if self.force or not cache.holds(e.name, stamps[e.name])]
        stale.sort(key=lambda e: build.weight(kernels[e.name]) if e.name in kernels else 0, reverse=True)
        print(f"{len(stale)} of {len(self.extensions)} kernels to compile", flush=True)

        def make(extension):
            source = extension.sources[0] if extension.sources else extension.name.replace(".", "/") + ".c"
            if not translated.holds(extension.name, stamps[extension.name]):
                made = processes.submit(build.translate, extension.name, source, self.build_temp).result()
                translated.keep(extension.name, stamps[extension.name], Path(made))
            extension.sources = [os.path.join(self.build_temp, extension.name.replace(".", os.sep) + ".c")]
            build.replace(translated.module(extension.name, stamps[extension.name]), Path(extension.sources[0]))
            extension.include_dirs = [str(build.ROOT)]  # headers are named from here
            extension.extra_compile_args, extension.extra_link_args = list(flags.compile), list(flags.link)
            self.build_extension(extension)
            cache.keep(extension.name, stamps[extension.name], Path(self.get_ext_fullpath(extension.name)))

        if stale:
            self.force = True  # what is stale is known already
            workers = self.parallel or build.processors()
            with build.translators(workers) as processes:
                build.run_all(stale, make, workers)
        for extension in self.extensions:
            kept = cache.module(extension.name, stamps[extension.name])
            target = Path(self.get_ext_fullpath(extension.name))
            if extension not in stale and not build.same(kept, target):
                build.replace(kept, target)

    def run(self):
        """Build the kernels, and put them next to their sources too.

        Python imports the folder ``pqext`` of the checkout it runs in, whatever is installed.
        """
        super().run()
        self.copy_extensions_to_source()
        made = {self.get_ext_filename(extension.name) for extension in self.extensions}
        for folder in (self.build_lib, build.ROOT):
            for orphan in build.orphans(Path(folder), made, self.get_ext_filename("")):
                orphan.unlink()

    def copy_file(self, infile, outfile, *args, **keywords):
        if not build.same(Path(infile), Path(outfile)):
            build.replace(Path(infile), Path(outfile))
        return outfile, 1

    def swig_sources(self, sources, extension=None):
        return sources


class NameFolder(editable_wheel):
    """An editable install that names this folder in a ``.pth`` file, where type checkers and editors find the types.

    By default setuptools installs an import hook for packages next to ``setup.py``, which only the interpreter uses.
    """

    def finalize_options(self):
        self.mode = self.mode or "compat"
        super().finalize_options()


if __name__ == "__main__":
    setup(
        cmdclass={"build_ext": BuildKernels, "editable_wheel": NameFolder},
        ext_modules=[
            Extension(build.SHARED, []),
            *(Extension(name, [str(source)]) for name, source in build.kernels().items()),
        ],
    )
