"""What every test stands on: the real home, configuration, port and terminal are out of reach."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Tuple

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent

# As the person who runs the tests has it: only to build the file, before any test looks.
REAL_ENVIRON: Dict[str, str] = dict(os.environ)

# Variables of the user that would lead a test to the user's files, or change what Python does.
_FOREIGN = ("MDELLO_COMPANION_", "XDG_", "CLAUDE", "ANTHROPIC_", "SHIV_", "PYTHON", "TMUX")
_ALSO_FOREIGN = ("DEBUG", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "SOURCE_DATE_EPOCH")

# No deadline per example: this must pass on a busy machine. No database: it would be in our tree.
settings.register_profile("house", deadline=None, database=None)
settings.load_profile("house")

Interpreter = Tuple[Tuple[int, int], str]


def pytest_collection_modifyitems(items: List[pytest.Item]) -> None:
    """The tests of the real agents begin first: they are the longest, and the others fill the gaps."""
    items.sort(key=lambda item: item.get_closest_marker("e2e") is None)


@pytest.fixture(scope="session", autouse=True)
def no_real_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let HOME be below a plain file, where not even root can make anything by mistake."""
    not_a_folder = tmp_path_factory.mktemp("nobody") / "not-a-folder"
    not_a_folder.write_text("The home of all tests is below this file, so it cannot exist.\n")
    kept = dict(os.environ)
    for name in kept:
        foreign = name.startswith(_FOREIGN) or name.upper() in _ALSO_FOREIGN
        if foreign and name != "PYTHONDONTWRITEBYTECODE":
            del os.environ[name]
    os.environ["HOME"] = str(not_a_folder / "home")
    # A companion started without a port of its own would then not start, instead of serving
    # the user's real agents.
    os.environ["MDELLO_COMPANION_PORT"] = "none-in-tests"
    # A shell lets what it starts in the background ignore Ctrl-C, and so would the programs started here.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    os.environ.clear()
    os.environ.update(kept)


@pytest.fixture(scope="session")
def pyz() -> Path:
    """The built ``mdello.pyz``; built first when ``build.py test`` has not done so."""
    given = REAL_ENVIRON.get("MDELLO_PYZ")
    if given:
        return Path(given)
    command = [sys.executable, str(ROOT / "build.py"), "build", "--if-needed"]
    subprocess.run(command, check=True, env=REAL_ENVIRON, stdin=subprocess.DEVNULL)
    return ROOT / "dist" / "mdello.pyz"


@pytest.fixture
def clean_environ(tmp_path: Path) -> Dict[str, str]:
    """An environment for a program of ours: an empty home, a port of its own, nothing else."""
    home = tmp_path / "home"
    home.mkdir()
    return {
        "HOME": str(home),
        # A program that begins with "env python3" is run by the Python that runs the tests.
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{REAL_ENVIRON.get('PATH', os.defpath)}",
        "LC_ALL": "C.UTF-8",
        "MDELLO_COMPANION_PORT": str(free_port()),
    }


def free_port() -> int:
    """A TCP port that nobody holds on the loopback now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture(scope="session")
def interpreters() -> List[Interpreter]:
    """(major, minor) and program of every CPython on PATH and below pyenv, too old ones included."""
    candidates = [Path(sys.executable)]
    for folder in REAL_ENVIRON.get("PATH", os.defpath).split(os.pathsep):
        candidates += sorted(Path(folder).glob("python[23].*[0-9]")) if folder else []
    pyenv = REAL_ENVIRON.get("PYENV_ROOT") or os.path.join(REAL_ENVIRON.get("HOME", "/nonexistent"), ".pyenv")
    candidates += sorted(Path(pyenv).glob("versions/*/bin/python"))
    found: Dict[Tuple[int, int], str] = {}
    for candidate in candidates:
        question = "import sys; print('%d %d' % sys.version_info[:2]); print(sys.executable)"
        try:
            answer = subprocess.run(
                [str(candidate), "-S", "-c", question], capture_output=True, text=True, timeout=60, check=True
            )
        except (OSError, subprocess.SubprocessError):
            continue
        version, program = answer.stdout.splitlines()
        major, minor = (int(part) for part in version.split())
        found.setdefault((major, minor), program)
    return sorted(found.items())


RunAs = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def run() -> RunAs:
    """``subprocess.run`` with text, an end, no input, and ``uid`` to drop root's rights first."""

    def _run(command: List[str], uid: int = 0, **more: object) -> "subprocess.CompletedProcess[str]":
        def drop() -> None:
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)

        options: Dict[str, object] = {
            "capture_output": True,
            "text": True,
            "encoding": "utf-8",
            "timeout": 120,
            "stdin": subprocess.DEVNULL,
            "preexec_fn": drop if uid else None,
            **more,
        }
        done: subprocess.CompletedProcess[str] = subprocess.run(command, **options)  # type: ignore[call-overload]
        return done

    return _run
