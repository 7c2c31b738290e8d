"""The rules of the house, read from the source itself."""

import ast
import re
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Dict, Iterator, List, Set, Tuple

import pytest

import mdello
from tests.conftest import ROOT, RunAs

# Floor by floor. A package imports from lower floors, never from its neighbours on the same one.
FLOORS: Dict[str, int] = {
    "companion.core": 1,
    "companion.archive": 1,
    "companion.boards": 2,
    "companion.sessions": 2,
    "companion.history": 2,
    "companion.service": 2,
    "companion.herdr": 2,
    "companion.enrich": 2,
    "companion.assignment": 2,
    "companion.web": 3,
    "companion.commands": 4,
    "mdello": 5,
}

# What may be imported although the table forbids it, and why.
ALLOWED: Dict[Tuple[str, str], str] = {
    ("companion.sessions", "companion.boards.cards"): "the record types of cards",
    ("companion.history", "companion.boards.cards"): "the record types of cards",
    ("companion.history", "companion.sessions.association"): "the record type of associations",
    ("companion.sessions", "companion.boards.registry"): "the record type of boards",
    ("companion.commands", "mdello"): "the version",
    ("companion.archive", "mdello"): "the archive's start-up calls the program",
}

ADAPTERS_FROM_FLOOR = 2

LONGEST_MODULE_LINES = 450

TEXT_SUFFIXES = (".py", ".md", ".toml", ".yml", ".js", ".mjs", ".sh", ".json", ".jsonl")

_FALLBACK_STDLIB = Path(__file__).resolve().parent / "fixtures" / "stdlib_3_9.txt"


def modules() -> List[Path]:
    """All source files that are packed."""
    found = [ROOT / "mdello.py", *(ROOT / "adapters").rglob("*.py"), *(ROOT / "companion").rglob("*.py")]
    return sorted(path for path in found if "__pycache__" not in path.parts)


def dotted(path: Path) -> str:
    """The module's name."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path) -> Iterator[str]:
    """Full names of what a file imports, at the top or inside of functions."""
    package = dotted(path) if path.name == "__init__.py" else dotted(path).rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = ROOT.joinpath(*base.split("."), alias.name)
                is_module = inner.with_suffix(".py").exists() or (inner / "__init__.py").exists()
                yield f"{base}.{alias.name}" if is_module else base


def room(name: str) -> str:
    """The package of the house that a module is in."""
    parts = name.split(".")
    return ".".join(parts[:2]) if parts[0] == "companion" else parts[0]


def standard_library() -> Set[str]:
    """Top-level names of the standard library (Python 3.10 and newer know them)."""
    names = getattr(sys, "stdlib_module_names", None)
    return set(names) if names is not None else set(_FALLBACK_STDLIB.read_text(encoding="utf-8").split())


def with_own_tests() -> List[Path]:
    """All but the packages' fronts and the program's, which are tested with what they lead to."""
    return [path for path in modules() if path.name not in ("__init__.py", "mdello.py")]


each_module = pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))


@each_module
def test_imports_point_down(path: Path) -> None:
    """From commands to web to boards, sessions, history to core; adapters know only themselves."""
    here = room(dotted(path))
    for name in imports(path):
        there = room(name)
        if there in (here, "companion") or there.split(".")[0] not in ("mdello", "companion", "adapters"):
            continue
        if any(here == a and (name == b or name.startswith(b + ".")) for a, b in ALLOWED):
            continue
        if here == "adapters":
            pytest.fail(f"an adapter imports {name}")
        if there == "adapters":
            assert FLOORS[here] >= ADAPTERS_FROM_FLOOR, f"{here} must not know agents, but imports {name}"
            continue
        assert FLOORS[there] < FLOORS[here], f"{here} imports {name}"


@each_module
def test_only_the_standard_library_is_imported(path: Path) -> None:
    """A stock Python is all that a user has."""
    for name in imports(path):
        top = name.partition(".")[0]
        assert top in standard_library() | {"mdello", "companion", "adapters"}, name


def test_the_list_of_the_standard_library_for_old_pythons_is_true() -> None:
    """What is listed for Python 3.9 was there in that Python, as far as a newer one can tell."""
    names = getattr(sys, "stdlib_module_names", None)
    if names is None:
        pytest.skip("this Python has no list of its own to compare with")
    removed = {"asynchat", "asyncore", "binhex", "distutils", "formatter", "imp", "parser", "smtpd", "symbol"}
    unknown = set(_FALLBACK_STDLIB.read_text(encoding="utf-8").split()) - set(names) - removed
    pep_594 = {
        "aifc",
        "audioop",
        "cgi",
        "cgitb",
        "chunk",
        "crypt",
        "imghdr",
        "mailcap",
        "msilib",
        "nis",
        "nntplib",
    }
    pep_594 |= {"ossaudiodev", "pipes", "sndhdr", "spwd", "sunau", "telnetlib", "uu", "xdrlib", "lib2to3"}
    assert unknown <= pep_594


@pytest.mark.parametrize("path", with_own_tests(), ids=lambda path: str(path.relative_to(ROOT)))
def test_every_module_has_its_test_file(path: Path) -> None:
    """``companion/boards/cards.py`` is tested by ``tests/companion/boards/test_cards.py``."""
    relative = path.relative_to(ROOT)
    expected = ROOT / "tests" / relative.parent / f"test_{path.name}"
    others = sorted(expected.parent.glob(f"test_{path.stem}_*.py"))
    assert expected.exists() or others, f"{expected.relative_to(ROOT)} is missing"


@each_module
def test_the_oldest_python_can_parse_it(path: Path) -> None:
    """Syntax of 3.9: no ``match``, no parenthesised ``with``, no ``except*``."""
    ast.parse(path.read_bytes(), feature_version=(3, 9))


@each_module
def test_modules_stay_short(path: Path) -> None:
    """A module nearing this is usually two."""
    assert len(path.read_bytes().splitlines()) <= LONGEST_MODULE_LINES


def test_there_is_no_drawer_for_everything() -> None:
    """A function lives with its user, or in a module named for what it does."""
    drawers = {"util", "utils", "common", "misc", "helpers", "tools"}
    assert not [path for path in modules() if drawers & set(dotted(path).split("."))]


# Each with its reason: one writer for files that others may link or share, one log, what is put into
# the agents' folders, and what works on files that the program or the builder has just made itself.
WRITERS = {
    "companion.core.files",
    "companion.sessions.journal",
    "adapters.placing",
    "adapters.made_folders",
    "adapters.claude.folder",
    "adapters.codex.install",
    "companion.archive.pack",
    "companion.archive.shiv",
    "companion.service.logfiles",
}
WRITING = re.compile(
    r"os\.(?:replace|rename|renames|link|truncate|ftruncate)\(|\.write_(?:text|bytes)\(|\.rename\("
    r"|open\([^)\n]*[\"'][wax]b?\+?[\"']|O_RDWR|O_CREAT|shutil\.(?:copy|move|rmtree)"
)


@each_module
def test_few_modules_write_files(path: Path) -> None:
    """Symlinks, modes, full disks and half-written files are thought of in one place."""
    if dotted(path) not in WRITERS:
        assert not WRITING.findall(path.read_text(encoding="utf-8"))


@each_module
def test_only_an_adapter_knows_its_agent(path: Path) -> None:
    """No comparison with an agent's name outside of its own package."""
    agents = {folder.name for folder in (ROOT / "adapters").iterdir() if (folder / "__init__.py").exists()}
    own = path.relative_to(ROOT).parts
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Compare):
            named = {part.value for part in ast.walk(node) if isinstance(part, ast.Constant)} & agents
            if named and not (own[0] == "adapters" and own[1] in named):
                pytest.fail(f"line {node.lineno} compares with {sorted(map(str, named))}")


@each_module
def test_every_public_name_has_its_docstring(path: Path) -> None:
    """Modules, classes, functions and methods; names with an underscore speak for themselves."""
    tree = ast.parse(path.read_bytes())
    speaks_python_2 = path.name == "stub.py"
    assert not tree.body or ast.get_docstring(tree) or speaks_python_2, "the module"
    for name, node in _public(tree):
        assert ast.get_docstring(node), f"{name}, line {node.lineno}"


_Documented = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def _public(tree: ast.AST, outer: str = "") -> Iterator[Tuple[str, ast.ClassDef]]:
    for node in getattr(tree, "body", []):
        if isinstance(node, _Documented) and not node.name.startswith("_"):
            yield outer + node.name, node  # type: ignore[misc]
            if isinstance(node, ast.ClassDef):
                yield from _public(node, f"{outer}{node.name}.")


# --- the repository ------------------------------------------------------------------------------


def tracked() -> List[Path]:
    """Every file of the repository, as git knows it; all files where there is no git."""
    try:
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listed.decode().split("\0") if name and (ROOT / name).is_file()]


def test_no_folder_of_a_developers_machine_is_named() -> None:
    """Paths of one machine mean nothing on another."""
    own = re.compile(rb"(?<![\w.])/(?:work|root)/[a-z]")
    named = []
    for path in tracked():
        text = path.suffix in TEXT_SUFFIXES or path.name == "run"
        if text and own.search(path.read_bytes()) and path != Path(__file__).resolve():
            named.append(str(path.relative_to(ROOT)))
    assert not named


def test_the_changelog_names_this_version_first() -> None:
    """No release while code and changelog disagree."""
    heads = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert heads[0] == mdello.__version__


def test_the_top_level_stays_as_it_is() -> None:
    """Documents, configuration, and the rooms of the house; no new drawer at the top."""
    code = {path.relative_to(ROOT).parts[0] for path in tracked() if path.suffix in (".py", ".toml")}
    assert code <= {"pyproject.toml", "mdello.py", "build.py", "adapters", "companion", "tests", "dist"}


# --- the README ----------------------------------------------------------------------------------

FENCE = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)


def readme_commands() -> List[str]:
    """Each command line of the README's ``sh`` blocks, in order, without prompts and comments."""
    found = []
    for block in FENCE.findall((ROOT / "README.md").read_text(encoding="utf-8")):
        for line in block.replace("\\\n", " ").splitlines():
            command = re.sub(r"\s+#.*", "", line.strip())
            command = command[2:] if command.startswith("$ ") else command
            if command and not command.startswith("#"):
                found.append(command)
    return found


def is_server(command: str) -> bool:
    """Whether the command runs until it is stopped."""
    return bool(re.fullmatch(r"(python3 )?\S*mdello\.pyz( serve( --demo)?)?|python3 build\.py run", command))


def test_every_command_of_the_readme_runs(
    pyz: Path, tmp_path: Path, clean_environ: Dict[str, str], run: RunAs
) -> None:
    """In order, as a reader would, in an empty home; a server is started, asked and stopped."""
    commands = readme_commands()
    assert sum("mdello.pyz" in command for command in commands) >= 5
    place = tmp_path / "downloads"
    place.mkdir()
    (place / "mdello.pyz").write_bytes(pyz.read_bytes())
    for command in commands:
        if command.startswith("python3 build.py"):
            continue  # Below: these need the repository.
        if is_server(command):
            serve_and_stop(command.split(), place, clean_environ)
            continue
        done = run(["sh", "-euc", command], cwd=place, env=clean_environ)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"


def test_the_build_commands_of_the_readme_exist(run: RunAs) -> None:
    """``build.py`` knows each of them; CI itself runs the test command."""
    for command in readme_commands():
        if command.startswith("python3 build.py"):
            name = command.split()[2]
            done = run([sys.executable, str(ROOT / "build.py"), "--help"])
            assert re.search(rf"^    {name}\b", done.stdout, re.MULTILINE), command


def serve_and_stop(command: List[str], place: Path, environ: Dict[str, str]) -> None:
    """Start a server, wait until it answers, end it as Ctrl-C would."""
    process = subprocess.Popen(
        command, cwd=place, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    url = f"http://127.0.0.1:{environ['MDELLO_COMPANION_PORT']}/health"
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        for _ in range(600):
            try:
                with direct.open(url, timeout=5) as answer:
                    assert answer.status == 200
                    break
            except OSError:
                assert process.poll() is None, f"{command} ended: {process.stderr.read()!r}"  # type: ignore[union-attr]
                time.sleep(0.05)
        else:
            pytest.fail(f"{command} does not answer")
    finally:
        process.terminate()
        process.communicate(timeout=60)
