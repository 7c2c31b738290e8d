#!/usr/bin/env python3
"""The one way to build, run, test and measure: ``python3 build.py [build|run|test|bench]``.

Each command sets up what it needs (pinned, in virtual environments of its own) below
``$MDELLO_BUILD_CACHE``, else ``~/.cache/mdello-build``, else ``.cache/`` here. Nothing of ours is
imported, so a broken source file never breaks the build script.
"""

import argparse
import contextlib
import hashlib
import json
import marshal
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

ROOT = Path(__file__).resolve().parent
PYZ = ROOT / "dist" / "mdello.pyz"
SUMS = ROOT / "dist" / "SHA256SUMS"
BUILT_FROM = ROOT / "dist" / ".built-from"

SUPPORTED = ((3, 9), (3, 10), (3, 11), (3, 12), (3, 13), (3, 14))
PACKED = ("mdello.py", "adapters", "companion")
# Parts of the build that lie with what they make: the archive's first lines; a program that
# each Python runs. Neither is a module of the archive.
STUB = "companion/archive/stub.py"
PACK = "companion/archive/pack.py"

# What a download over a slow or filtered link should stay below.
SIZE_LIMIT_BYTES = 400_000
# Compiled modules are added while the archive stays below this; the rest starts from source,
# which costs 10 ms per thousand lines.
READY_LIMIT_BYTES = 385_000
# In this order: what every short command imports. A server may start a little later.
READY_FIRST = (
    "mdello",
    "companion",
    "companion.archive.start",
    "companion.commands",
    "companion.commands.hook_post",
    "companion.commands.dispatch",
    "companion.commands.help",
    "companion.commands.version",
    "companion.core",
    "companion.core.errors",
    "companion.core.settings",
    "companion.core.archive",
    "companion.core.clock",
    "adapters",
    "adapters.contract",
    "companion.commands.status",
    "companion.web",
    "companion.web.client",
    "companion.web.peer",
    "companion.core.config",
    "companion.core.files",
    "companion.commands.wiring",
    "companion.boards.*",
    "companion.sessions.[aijlp]*",
    "companion.commands.*",
    "companion.core.*",
)

SHIV = ["shiv==1.0.8", "click==8.1.8", "pip==24.3.1", "setuptools==75.8.2"]
CHECKERS = ["ruff==0.17.6", "mypy==2.4.1"]
TESTERS_39 = ["pytest==8.4.2", "pytest-xdist==3.8.0", "hypothesis==6.141.1"]
TESTERS = ["pytest==9.2.0", "pytest-xdist==3.8.0", "hypothesis==6.170.17"]

# 1980-01-01, the first moment a zip archive can name.
ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)
SOURCE_DATE_EPOCH = "315532800"


class BuildError(Exception):
    """Something that the person at the keyboard must mend; the text is one line for them."""


class Python(NamedTuple):
    """An interpreter found on this machine."""

    version: Tuple[int, int, int]
    magic: str
    """The mark of its compiled files, in hex."""
    path: str

    @property
    def name(self) -> str:
        """As people write it: ``3.9``."""
        return f"{self.version[0]}.{self.version[1]}"


# --- interpreters and environments ---------------------------------------------------------------


def find_pythons() -> List[Python]:
    """One CPython per supported minor version, oldest first; of several the highest patch level.

    Looks at PATH, at pyenv's versions and at the interpreter that runs this. Which folder this is
    called from makes no difference.
    """
    candidates = [sys.executable]
    for major, minor in SUPPORTED:
        found = shutil.which(f"python{major}.{minor}")
        candidates += [found] if found else []
    candidates += [found for found in [shutil.which("python3")] if found]
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path("~/.pyenv").expanduser())
    candidates += sorted(str(path) for path in pyenv.glob("versions/3.*/bin/python3"))
    best: Dict[Tuple[int, int], Python] = {}
    for candidate in candidates:
        python = _ask(candidate)
        if python is None or python.version[:2] not in SUPPORTED:
            continue
        known = best.get(python.version[:2])
        if known is None or python.version > known.version:
            best[python.version[:2]] = python
    if not best:
        raise BuildError("no CPython from 3.9 to 3.14 is found on PATH or below pyenv.")
    return [best[key] for key in sorted(best)]


def _ask(candidate: str) -> Optional[Python]:
    """What this program is; None when it is no CPython that starts (pyenv's shims may not)."""
    question = (
        "import sys, json, importlib.util as u; print(json.dumps([sys.implementation.name,"
        "sys.version_info[:3], u.MAGIC_NUMBER.hex(), getattr(sys, '_base_executable', sys.executable)]))"
    )
    try:
        answer = subprocess.run(
            [candidate, "-S", "-c", question], capture_output=True, text=True, timeout=60, check=True
        )
        implementation, version, magic, path = json.loads(answer.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return Python(tuple(version), magic, path) if implementation == "cpython" else None


def cache_dir() -> Path:
    """The folder for tools and test environments; the first of three that can be written."""
    named = os.environ.get("MDELLO_BUILD_CACHE")
    xdg = os.environ.get("XDG_CACHE_HOME", "")
    home = os.environ.get("HOME", "")
    choices = [
        Path(named) if named else None,
        Path(xdg) / "mdello-build" if os.path.isabs(xdg) else None,
        Path(home) / ".cache" / "mdello-build" if os.path.isabs(home) else None,
        ROOT / ".cache",
    ]
    for choice in choices:
        with contextlib.suppress(OSError):
            if choice is not None:
                choice.mkdir(parents=True, exist_ok=True)
                with tempfile.TemporaryFile(dir=choice):
                    return choice.resolve()
    raise BuildError("no folder for build tools can be written: set MDELLO_BUILD_CACHE to one.")


@contextlib.contextmanager
def only_one(name: str) -> Iterator[None]:
    """Let one build.py at a time do what ``name`` says. Two at once would spoil each other's files."""
    try:
        import fcntl  # noqa: PLC0415 - absent on Windows
    except ImportError:
        yield
        return
    with (cache_dir() / f"{name}.lock").open("w") as handle:
        with contextlib.suppress(OSError):  # A file system without locks: be careful yourself.
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def environment(purpose: str, python: Python, requirements: List[str]) -> Path:
    """The interpreter of a virtual environment that holds exactly ``requirements``.

    Made on first use and again when a pin changes. BuildError when pip cannot install them.
    """
    key = hashlib.sha256(json.dumps([requirements, python]).encode()).hexdigest()[:12]
    folder = cache_dir() / f"{purpose}-{python.name}-{key}"
    program = folder / "bin" / "python"
    done = folder / "complete"
    with only_one("environments"):
        if done.exists() and program.exists():
            return program
        say(f"setting up {purpose} for Python {python.name} in {folder}")
        shutil.rmtree(folder, ignore_errors=True)
        pip = [str(program), "-m", "pip", "install", "--quiet", "--no-input", "--no-warn-script-location"]
        try:
            subprocess.run([python.path, "-m", "venv", str(folder)], check=True, stdout=2)
            # No cache of pip's own: a home that cannot be written must not matter.
            subprocess.run([*pip, "--no-cache-dir", *requirements], check=True, stdout=2, env=_clean_env())
        except (OSError, subprocess.CalledProcessError) as exc:
            raise BuildError(f"{purpose} for Python {python.name} cannot be set up: {exc}") from exc
        done.touch()
    return program


def _clean_env(**more: str) -> Dict[str, str]:
    """This environment without what would change how a Python of ours behaves."""
    kept = {
        k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "SHIV_")) and k != "VIRTUAL_ENV"
    }
    return {**kept, **more}


# --- build ---------------------------------------------------------------------------------------


def build(pythons: List[Python]) -> None:
    """Make ``dist/mdello.pyz`` and ``dist/SHA256SUMS``: the same bytes from any folder.

    "Same" holds for the same sources, the same set of Pythons and the pinned shiv.
    """
    fingerprint = _fingerprint(pythons)
    with tempfile.TemporaryDirectory(prefix="mdello-build-") as scratch:
        stage = Path(scratch) / "stage"
        _stage(stage)
        for task in ("clients", "strip"):
            subprocess.run(
                [pythons[-1].path, str(ROOT / PACK), task, str(stage)], check=True, env=_clean_env()
            )
        shiv = environment("shiv", pythons[-1], SHIV)
        packed = Path(scratch) / "shiv.pyz"
        command = [str(shiv), "-W", "ignore", "-m", "shiv", "--site-packages", str(stage), "--reproducible"]
        subprocess.run(
            [*command, "-e", "mdello:main", "-p", "/usr/bin/env python3", "-o", str(packed)],
            check=True,
            env=_clean_env(SOURCE_DATE_EPOCH=SOURCE_DATE_EPOCH),
        )
        members = _members_of(packed)
        members["__main__.py"] = (ROOT / STUB).read_bytes()
        # For the oldest Python, which is the slowest to open an archive; others pass it by.
        members["__main__.pyc"] = _pack(pythons[0], "pyc", ROOT / STUB)
        members.update(_ready_members(stage, pythons, members))
        _write_archive(members)
    size = PYZ.stat().st_size
    if size > SIZE_LIMIT_BYTES:
        raise BuildError(f"{PYZ} has {size} bytes, more than the {SIZE_LIMIT_BYTES} it may have.")
    digest = hashlib.sha256(PYZ.read_bytes()).hexdigest()
    SUMS.write_text(f"{digest}  {PYZ.name}\n", encoding="utf-8")
    BUILT_FROM.write_text(fingerprint, encoding="utf-8")
    say(f"{PYZ}: {size} bytes, compiled for {', '.join(python.name for python in pythons)}")


def build_if_needed(pythons: List[Python]) -> None:
    """Build, unless the file at hand was built from these very sources for these very Pythons."""
    with only_one("build-" + hashlib.sha256(str(ROOT).encode()).hexdigest()[:12]):
        with contextlib.suppress(OSError):
            if PYZ.exists() and BUILT_FROM.read_text(encoding="utf-8") == _fingerprint(pythons):
                return
        build(pythons)


def _fingerprint(pythons: List[Python]) -> str:
    digest = hashlib.sha256(json.dumps(pythons).encode())
    for name in ["build.py", STUB, PACK, *_sources()]:
        digest.update(name.encode() + b"\0" + (ROOT / name).read_bytes() + b"\0")
    return digest.hexdigest()


def _sources() -> List[str]:
    """What goes into the archive, relative to the repository, sorted."""
    found = []
    for top in PACKED:
        paths = [ROOT / top] if (ROOT / top).is_file() else (ROOT / top).rglob("*")
        for path in paths:
            hidden = any(
                part.startswith(".") or part == "__pycache__" for part in path.relative_to(ROOT).parts
            )
            ours = path.suffix != ".pyc" and path.relative_to(ROOT).as_posix() not in (STUB, PACK)
            if path.is_file() and ours and not hidden:
                found.append(path.relative_to(ROOT).as_posix())
    return sorted(found)


def _stage(stage: Path) -> None:
    """Copy the sources into a clean folder. Their modes are set, since a umask differs by person."""
    for name in _sources():
        target = stage / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / name).read_bytes())
        target.chmod(0o644)
    script = stage / "bin" / "mdello"  # For SHIV_CONSOLE_SCRIPT=mdello.
    script.parent.mkdir()
    script.write_text(
        "#!/usr/bin/env python3\nimport sys\n\nfrom mdello import main\n\nsys.exit(main())\n",
        encoding="utf-8",
    )
    script.chmod(0o755)


def _members_of(packed: Path) -> Dict[str, bytes]:
    with zipfile.ZipFile(packed) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _write_archive(members: Dict[str, bytes]) -> None:
    """Write the archive beside its place and move it there. Order, times and modes are fixed."""
    PYZ.parent.mkdir(exist_ok=True)
    fd, beside = tempfile.mkstemp(dir=PYZ.parent, prefix=".mdello-")
    with os.fdopen(fd, "wb") as handle:
        handle.write(b"#!/usr/bin/env python3\n")
        with zipfile.ZipFile(handle, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for name in sorted(members):
                info = zipfile.ZipInfo(name, date_time=ZIP_EPOCH)
                info.create_system = 3  # Unix, wherever this runs: the modes below mean something.
                info.compress_type = zipfile.ZIP_DEFLATED
                info.external_attr = (0o100755 if "/bin/" in name else 0o100644) << 16
                archive.writestr(info, members[name])
    os.chmod(beside, 0o755)
    os.replace(beside, PYZ)


def _ready_members(stage: Path, pythons: List[Python], members: Dict[str, bytes]) -> Dict[str, bytes]:
    """The modules compiled for each Python, as many as keep the archive below its limit.

    One member per Python: fewer members for Python to list at each start, and a third smaller
    than a file per module.
    """
    compiled = {python: marshal.loads(_pack(python, "compile", stage)) for python in pythons}
    room = READY_LIMIT_BYTES - sum(
        len(zlib.compress(data, 9)) + 2 * len(name) + 100 for name, data in members.items()
    )
    packers = {python: zlib.compressobj(9) for python in pythons}
    packed = dict.fromkeys(pythons, 0)
    chosen: List[str] = []
    for name in sorted(compiled[pythons[0]], key=_readiness):
        for python, packer in packers.items():
            packed[python] += len(packer.compress(compiled[python][name] + name.encode()))
        if sum(packed[python] + len(packers[python].copy().flush()) for python in pythons) > room:
            break
        chosen.append(name)
    say(f"{len(chosen)} of {len(compiled[pythons[0]])} modules are packed compiled")
    return {
        f"ready/{python.magic}": marshal.dumps({name: compiled[python][name] for name in chosen}, 2)
        for python in pythons
    }


def _readiness(name: str) -> Tuple[int, str]:
    ranks = (rank for rank, pattern in enumerate(READY_FIRST) if fnmatchcase(name, pattern))
    return next(ranks, len(READY_FIRST)), name


def _pack(python: Python, task: str, place: Path) -> bytes:
    """What ``pack.py`` writes, run by that Python.

    A process of its own, with nothing of the user's in it and a fixed hash seed: what else lives
    in an interpreter shows in what marshal writes.
    """
    return subprocess.run(
        [python.path, "-S", "-s", "-X", "no_debug_ranges", str(ROOT / PACK), task, str(place)],
        check=True,
        stdout=subprocess.PIPE,
        env={"PYTHONHASHSEED": "0"},
    ).stdout


# --- run, test, bench ----------------------------------------------------------------------------


def run(arguments: List[str]) -> int:
    """Build when needed, then become the program. Without arguments: a demo board, to look around."""
    build_if_needed(find_pythons())
    os.execv(sys.executable, [sys.executable, str(PYZ), *(arguments or ["serve", "--demo"])])


def test(arguments: List[str], fast: bool, every: bool) -> int:
    """Check style and types, then run the suite on the oldest and the newest Python.

    The tests that drive real agent programs (e2e) run with those of the newest only: they drive
    the built file. Returns 0 when all is well.
    """
    pythons = find_pythons()
    build_if_needed(pythons)
    status = 0 if fast else check_style(pythons[-1])
    for python in [pythons[-1]] if fast else _to_test(pythons, every):
        chosen = ["-m", "not e2e"] if fast or python != pythons[-1] else []
        status = pytest(python, [*chosen, *arguments]) or status
    return status


def pytest(python: Python, arguments: List[str]) -> int:
    """Run pytest with this Python; 0 when all passed, also when the arguments chose no test.

    Two tests per core at once: many wait for a program. Their files have a folder of their own,
    which stays when one failed: pytest's is closed to other users by whichever run begins next.
    """
    program = environment("test", python, TESTERS_39 if python.version < (3, 10) else TESTERS)
    arguments = ["-n", str(2 * (os.cpu_count() or 1)), "--dist", "worksteal", *arguments]
    say(f"Python {'.'.join(map(str, python.version))}: pytest {' '.join(arguments)}")
    folder = tempfile.mkdtemp(prefix="test-files-")
    command = [str(program), "-m", "pytest", "--basetemp", os.path.join(folder, "files"), *arguments]
    status = subprocess.run(command, cwd=ROOT, env=_clean_env(MDELLO_PYZ=str(PYZ))).returncode
    no_tests = 5
    if status not in (0, no_tests):
        say(f"what the tests left is in {folder}")
        return status
    shutil.rmtree(folder, ignore_errors=True)
    return 0


def _to_test(pythons: List[Python], every: bool) -> List[Python]:
    middle = [python for python in pythons[1:-1] if every and python.version[:2] == (3, 11)]
    return [*pythons[:1], *middle, *pythons[-1:]] if len(pythons) > 1 else pythons


def check_style(python: Python) -> int:
    """Lint, format and types of the whole repository; 0 when nothing is to be said."""
    program = str(environment("check", python, CHECKERS + TESTERS))
    commands = [["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy"]]
    return max(subprocess.run([program, "-m", *command], cwd=ROOT).returncode for command in commands)


def bench() -> int:
    """Run every module of ``tests/bench`` against the built file, each in a process of its own."""
    pythons = find_pythons()
    build_if_needed(pythons)
    program = str(environment("test", pythons[-1], TESTERS))
    env = _clean_env(
        MDELLO_PYZ=str(PYZ),
        MDELLO_BENCH_PYTHONS=os.pathsep.join(python.path for python in pythons),
        PYTHONPATH=str(ROOT),
    )
    status = 0
    for path in sorted((ROOT / "tests" / "bench").glob("bench_*.py")):
        say(path.stem)
        status = subprocess.run([program, str(path)], cwd=ROOT, env=env).returncode or status
    return status


def say(text: str) -> None:
    """Tell the person at the keyboard what goes on; standard output is for results."""
    print(f"build.py: {text}", file=sys.stderr, flush=True)


def main(arguments: List[str]) -> int:
    """Run one command. Returns the exit code."""
    if arguments[:1] == ["run"]:  # All that follows is for the program, options too.
        return run(arguments[1:])
    parser = argparse.ArgumentParser(prog="build.py", description="Build, run, test and measure mdello.")
    commands = parser.add_subparsers(dest="command")
    build_parser = commands.add_parser("build", help="make dist/mdello.pyz (also without any command)")
    build_parser.add_argument("--if-needed", action="store_true", help="only when a source has changed")
    commands.add_parser("run", help="build, then run the program with the given arguments")
    tests = commands.add_parser("test", help="check style and types, run the tests")
    tests.add_argument("--fast", action="store_true", help="only the newest Python, no style, no real agents")
    tests.add_argument("--all", action="store_true", help="Python 3.11 too (always so when CI=true)")
    commands.add_parser("bench", help="print the figures of speed and size")
    options, rest = parser.parse_known_args(arguments)
    if rest and options.command != "test":
        parser.error(f"unknown arguments: {' '.join(rest)}")
    if options.command == "test":
        return test(rest, options.fast, options.all or os.environ.get("CI") == "true")
    if options.command == "bench":
        return bench()
    if getattr(options, "if_needed", False):
        build_if_needed(find_pythons())
    else:
        build(find_pythons())
    return 0


if __name__ == "__main__":
    try:
        raise SystemExit(main(sys.argv[1:]))
    except BuildError as problem:
        raise SystemExit(f"build.py: {problem}") from None
    except subprocess.CalledProcessError as problem:
        raise SystemExit(f"build.py: {problem}") from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
