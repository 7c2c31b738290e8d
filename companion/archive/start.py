"""Runs the program straight from the archive: nothing is unpacked, nothing is written.

Python's own ``zipimport`` would do, but it compiles every module twice (3.10 and later, once to
learn its file name) and knows one ``.pyc`` per module, while the archive is for many Pythons. So
a finder of ours stands first on ``sys.meta_path``. Standing first also means that a folder named
``adapters`` or ``companion`` on the user's PYTHONPATH is never imported instead of ours.
"""

import marshal
import os
import sys

TYPE_CHECKING = False  # Type checkers know the name. Importing typing costs a third of the start.
if TYPE_CHECKING:
    from types import CodeType, ModuleType
    from typing import Any, Sequence

OURS = ("mdello", "companion", "adapters")
"""The top-level names that only we may provide."""

SHIV_VARIABLES = (
    "SHIV_ROOT",
    "SHIV_FORCE_EXTRACT",
    "SHIV_ENTRY_POINT",
    "SHIV_MODULE",
    "SHIV_CONSOLE_SCRIPT",
    "SHIV_INTERPRETER",
    "SHIV_EXTEND_PYTHONPATH",
    "SHIV_PREPEND_PYTHONPATH",
)
"""Variables of shiv that ask for something only its own start-up does."""


class ArchiveFinder:
    """Finds and loads our modules in the archive: compiled ones when they are there, else source.

    ``ready`` maps a module's name to its marshalled code; ``here`` is the archive's absolute path.
    Both finder and loader, as :class:`zipimport.zipimporter` is.
    """

    def __init__(self, here: str, ready: dict[str, bytes]) -> None:
        self.archive = here  # The name by which importlib.resources of Python 3.9 asks for it.
        self.site = os.path.join(here, "site-packages")
        self._ready = ready
        self._zip: Any = None

    def find_spec(self, name: str, path: "Sequence[str] | None" = None, target: "Any" = None) -> "Any":
        """The spec of a module of ours, or None for anybody else's."""
        if name.partition(".")[0] not in OURS:
            return None
        from importlib.machinery import ModuleSpec  # noqa: PLC0415 - loaded already, like os

        filename = self.get_filename(name)
        if filename is None:
            return None
        package = filename.endswith("__init__.py")
        spec = ModuleSpec(name, self, origin=filename, is_package=package)  # type: ignore[arg-type]
        spec.has_location = True
        if package:
            spec.submodule_search_locations = [os.path.dirname(filename)]
        return spec

    def create_module(self, spec: "Any") -> None:
        """None: the ordinary kind of module will do."""

    def exec_module(self, module: "ModuleType") -> None:
        """Run the module's code in its namespace."""
        exec(self.get_code(module.__name__), module.__dict__)

    def is_package(self, name: str) -> bool:
        """Whether the module is a package."""
        return (self.get_filename(name) or "").endswith("__init__.py")

    def get_filename(self, name: str) -> "str | None":
        """The path that a traceback shows (inside the archive), or None when there is no such module."""
        base = os.path.join(self.site, *name.split("."))
        packed = self._ready.get(name)
        for filename, package in ((os.path.join(base, "__init__.py"), True), (base + ".py", False)):
            if packed is not None:
                if package == (packed[:1] == b"P"):
                    return filename
            elif self._has(filename):
                return filename
        return None

    def get_code(self, name: str) -> "CodeType":
        """The module's code. ImportError when there is no such module."""
        packed = self._ready.get(name)
        if packed is not None:
            code: CodeType = marshal.loads(packed[1:])
            return code
        filename = self.get_filename(name)
        if filename is None:
            raise ImportError(f"no module named {name!r}", name=name)
        return compile(self.get_data(filename), filename, "exec", dont_inherit=True)

    def get_source(self, name: str) -> "str | None":
        """The module's text, for tracebacks."""
        filename = self.get_filename(name)
        return self.get_data(filename).decode("utf-8") if filename else None

    def get_data(self, path: str) -> bytes:
        """The bytes of a member, named by its full path. OSError when it is not there."""
        data: bytes = self._importer().get_data(path)
        return data

    def get_resource_reader(self, name: str) -> "Any":
        """What ``importlib.resources`` reads a package's files with."""
        import zipimport  # noqa: PLC0415

        parent = os.path.join(self.site, *name.split(".")[:-1])
        return zipimport.zipimporter(parent).get_resource_reader(name)

    def _has(self, filename: str) -> bool:
        try:
            self.get_data(filename)
        except OSError:
            return False
        return True

    def _importer(self) -> "Any":
        if self._zip is None:  # Late, since it reads the archive's directory once more.
            import zipimport  # noqa: PLC0415

            self._zip = zipimport.zipimporter(self.archive)
        return self._zip


def run(here: str, ready: dict[str, bytes]) -> int:
    """Start the program that ``here`` (the archive, or a folder it was unzipped into) holds.

    Returns the exit code. Shiv's own start-up runs instead when one of its variables asks for it.
    """
    _put_ours_first(here, ready)
    if any(os.environ.get(name) for name in SHIV_VARIABLES):
        from companion.archive import shiv  # noqa: PLC0415

        shiv.run(here)
    import mdello  # noqa: PLC0415

    return mdello.main()


def _put_ours_first(here: str, ready: dict[str, bytes]) -> None:
    """See that the names of ours mean our modules, whatever is on PYTHONPATH or imported already."""
    if os.path.isfile(here):
        sys.meta_path.insert(0, ArchiveFinder(here, ready))
    # Python put the archive's root there, as the path was typed: relative, it dies with a chdir.
    sys.path[0] = os.path.join(here, "site-packages")
    for name in list(sys.modules):  # A sitecustomize may have imported a stranger of that name.
        if name.partition(".")[0] in OURS:
            del sys.modules[name]
