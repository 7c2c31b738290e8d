"""The built file, in every place where single-file programs are known to fail.

Each test runs the real file in a process of its own. Where a place cannot be made on this machine
(another user, a full disk), the test is skipped and says why.
"""

import contextlib
import hashlib
import importlib.util
import json
import marshal
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List
from urllib.parse import quote

import pytest

from tests.companion.web.talk import Talk
from tests.conftest import ROOT, Interpreter, RunAs

SIZE_LIMIT_BYTES = 400_000
NOBODY = 65534
AS_NOBODY = pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")


@pytest.fixture
def alone(pyz: Path, tmp_path: Path) -> Path:
    """A copy of the file, alone in an empty folder."""
    folder = tmp_path / "alone"
    folder.mkdir()
    shutil.copy2(pyz, folder)
    return folder / pyz.name


@pytest.fixture
def for_all(tmp_path: Path) -> Path:
    """A folder that another user can reach, unlike pytest's own."""
    for parent in [tmp_path, *tmp_path.parents]:
        if parent.stat().st_uid == os.getuid() and parent not in (Path("/"), Path("/tmp")):
            parent.chmod(parent.stat().st_mode | 0o055)
    return tmp_path


def everything_below(folder: Path) -> List[str]:
    """The names of all that is in a folder, sorted."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def assert_version(done: "subprocess.CompletedProcess[str]") -> None:
    """The process printed our version and nothing else."""
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("mdello ")
    assert len(done.stdout.splitlines()) == 1


# --- the file itself -----------------------------------------------------------------------------


def test_the_file_is_small_and_executable(pyz: Path) -> None:
    """Below 400 kB, with the x bit for all, and its checksum beside it."""
    assert pyz.stat().st_size < SIZE_LIMIT_BYTES
    assert pyz.stat().st_mode & 0o777 == 0o755
    digest = hashlib.sha256(pyz.read_bytes()).hexdigest()
    assert (pyz.parent / "SHA256SUMS").read_text() == f"{digest}  mdello.pyz\n"


def test_nothing_of_the_builder_is_inside(pyz: Path) -> None:
    """No folder of the machine that built it, no time, no uid, in a fixed order."""
    with zipfile.ZipFile(pyz) as archive:
        infos = archive.infolist()
        assert [info.filename for info in infos] == sorted(info.filename for info in infos)
        assert {info.date_time for info in infos} == {(1980, 1, 1, 0, 0, 0)}
        assert {info.create_system for info in infos} == {3}
        for info in infos:
            data = archive.read(info)
            for trace in (str(ROOT).encode() + b"/", str(Path(sys.prefix)).encode() + b"/", b"direct_url"):
                assert trace not in data, info.filename


def test_tests_and_build_script_are_not_inside(pyz: Path) -> None:
    """Only what runs is packed."""
    with zipfile.ZipFile(pyz) as archive:
        tops = {name.split("/")[1] for name in archive.namelist() if name.startswith("site-packages/")}
    assert tops == {"mdello.py", "adapters", "companion", "bin"}


def test_verbose_version_names_the_file_and_its_sum(
    alone: Path, clean_environ: Dict[str, str], run: RunAs
) -> None:
    """A person can compare what runs with what was published."""
    done = run([str(alone), "--version", "--verbose"], env=clean_environ, cwd="/")
    assert str(alone) in done.stdout
    assert hashlib.sha256(alone.read_bytes()).hexdigest() in done.stdout


# --- interpreters --------------------------------------------------------------------------------


def test_every_supported_python_runs_it(
    alone: Path, clean_environ: Dict[str, str], run: RunAs, interpreters: List[Interpreter]
) -> None:
    """Python 3.9 and newer print the version, compiled modules for them or not."""
    for version, program in interpreters:
        if version >= (3, 9):
            done = run([program, str(alone), "--version"], env=clean_environ)
            assert_version(done)
            assert f"Python {version[0]}.{version[1]}." in done.stdout


def test_an_old_python_is_told_in_one_line(
    alone: Path, clean_environ: Dict[str, str], run: RunAs, interpreters: List[Interpreter]
) -> None:
    """What is needed, what was found, exit code 1, no traceback."""
    old = [(version, program) for version, program in interpreters if version < (3, 9)]
    if not old:
        pytest.skip("no Python older than 3.9 on this machine")
    for version, program in old:
        done = run([program, str(alone), "--version"], env=clean_environ)
        assert (done.returncode, done.stdout) == (1, "")
        assert len(done.stderr.splitlines()) == 1
        assert "needs Python 3.9 or newer" in done.stderr
        assert f"this is Python {version[0]}.{version[1]}." in done.stderr


def test_a_python_without_compiled_modules_runs_the_source(
    alone: Path, clean_environ: Dict[str, str], run: RunAs
) -> None:
    """A version newer than the build finds no compiled modules and is merely slower."""
    plain = alone.with_name("plain.pyz")
    with zipfile.ZipFile(alone) as source, zipfile.ZipFile(plain, "w") as target:
        for name in source.namelist():
            if not name.startswith("ready/"):
                target.writestr(name, source.read(name))
    assert_version(run([sys.executable, str(plain), "--version"], env=clean_environ))
    shown = run([sys.executable, str(plain), "help"], env=clean_environ)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout == run([sys.executable, str(alone), "help"], env=clean_environ).stdout


def test_isolated_mode_works(alone: Path, clean_environ: Dict[str, str], run: RunAs) -> None:
    """``python3 -I``, and also without site, warnings as errors, or written bytecode."""
    for flags in (["-I"], ["-S"], ["-E", "-s"], ["-W", "error"], ["-B", "-OO"]):
        assert_version(run([sys.executable, *flags, str(alone), "--version"], env=clean_environ))


def test_the_quickest_commands_compile_nothing(
    alone: Path, clean_environ: Dict[str, str], run: RunAs
) -> None:
    """What ``--version`` and an agent's hook import of ours is packed compiled (see READY_FIRST)."""
    with zipfile.ZipFile(alone) as archive:
        member = f"ready/{importlib.util.MAGIC_NUMBER.hex()}"
        if member not in archive.namelist():
            pytest.skip("the file was built without this Python")
        ready = marshal.loads(archive.read(member))
    for arguments in (["--version"], ["hook-post", "claude"]):
        done = run([sys.executable, "-X", "importtime", str(alone), *arguments], env=clean_environ)
        imported = {line.split("|")[-1].strip() for line in done.stderr.splitlines()}
        ours = {name for name in imported if name.split(".")[0] in ("mdello", "companion", "adapters")}
        assert "mdello" in ours
        assert ours <= set(ready)


# --- places --------------------------------------------------------------------------------------


def test_alone_it_leaves_nothing_behind(alone: Path, clean_environ: Dict[str, str], run: RunAs) -> None:
    """``--version`` and ``help`` write nothing: not at home, not beside the file, not where one is."""
    before = everything_below(alone.parent)
    for arguments in (["--version"], ["--version", "--verbose"], ["help"]):
        done = run([str(alone), *arguments], env=clean_environ, cwd=alone.parent)
        assert (done.returncode, done.stderr) == (0, "")
    assert everything_below(Path(clean_environ["HOME"])) == []
    assert everything_below(alone.parent) == before


@pytest.mark.parametrize(
    "name", ["with spaces", 'it\'s "quoted"', "ünï-cödé", "u\u0308ni", "-dash", "a#b%20?", "$HOME"]
)
def test_any_path_will_do(alone: Path, clean_environ: Dict[str, str], run: RunAs, name: str) -> None:
    """Absolute, relative and through ``python3``, from a folder with a trying name."""
    folder = alone.parent / name
    folder.mkdir()
    shutil.copy2(alone, folder)
    assert_version(run([str(folder / alone.name), "--version"], env=clean_environ))
    assert_version(run([sys.executable, str(folder / alone.name), "--version"], env=clean_environ))
    assert_version(run(["./mdello.pyz", "--version"], env=clean_environ, cwd=folder))


def test_through_a_symlink_of_another_name(alone: Path, clean_environ: Dict[str, str], run: RunAs) -> None:
    """The link's own path is what it calls itself: an update may point the link elsewhere."""
    link = alone.with_name("mdello")
    link.symlink_to(alone)
    assert_version(run([str(link), "--version"], env=clean_environ))
    assert str(link) + "\n" in run([str(link), "--version", "--verbose"], env=clean_environ).stdout


def test_without_the_executable_bit(alone: Path, clean_environ: Dict[str, str], run: RunAs) -> None:
    """As a browser saves it, or on a noexec disk: ``python3 mdello.pyz``."""
    alone.chmod(0o644)
    assert_version(run([sys.executable, alone.name, "--version"], env=clean_environ, cwd=alone.parent))


def test_unzipped_by_hand(alone: Path, clean_environ: Dict[str, str], run: RunAs) -> None:
    """``python3 folder`` works too, also when called from elsewhere."""
    folder = alone.parent / "by hand"
    with zipfile.ZipFile(alone) as archive:
        archive.extractall(folder)
    assert_version(run([sys.executable, str(folder), "--version"], env=clean_environ, cwd="/"))
    assert run([sys.executable, "by hand", "help"], env=clean_environ, cwd=alone.parent).returncode == 0


def test_sixteen_at_once(alone: Path, clean_environ: Dict[str, str]) -> None:
    """All sixteen print the version; the same when shiv is asked to unpack for the first time."""
    for more in ({}, {"SHIV_ROOT": str(alone.parent / "shiv")}):
        started = [
            subprocess.Popen(
                [str(alone), "--version"],
                env={**clean_environ, **more},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for _ in range(16)
        ]
        for process in started:
            output, errors = process.communicate(timeout=120)
            assert (process.returncode, errors) == (0, "")
            assert output.startswith("mdello ")


# --- homes and disks -----------------------------------------------------------------------------


@AS_NOBODY
def test_a_home_that_cannot_be_written(
    pyz: Path, for_all: Path, clean_environ: Dict[str, str], run: RunAs
) -> None:
    """Another user, a read-only home and folder: the same answer."""
    shutil.copy2(pyz, for_all)
    home = Path(clean_environ["HOME"])
    home.chmod(0o555)
    python = _python_for_all()
    for arguments in (["--version"], ["help"]):
        done = run([python, str(for_all / pyz.name), *arguments], env=clean_environ, cwd=for_all, uid=NOBODY)
        assert (done.returncode, done.stderr) == (0, "")
    assert everything_below(home) == []


@AS_NOBODY
def test_a_user_without_a_home(pyz: Path, for_all: Path, clean_environ: Dict[str, str], run: RunAs) -> None:
    """HOME unset and no account of that number, as in some containers."""
    shutil.copy2(pyz, for_all)
    del clean_environ["HOME"]
    for uid in (0, NOBODY, 54321):
        for arguments in (["--version"], ["help"]):
            done = run([_python_for_all(), str(for_all / pyz.name), *arguments], env=clean_environ, uid=uid)
            assert (done.returncode, done.stderr) == (0, "")


def _python_for_all() -> str:
    """An interpreter that every user may start: root's own may be in root's home."""
    for candidate in ("/usr/bin/python3", "/usr/local/bin/python3", sys.executable):
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            question = "import sys; sys.exit(sys.version_info < (3, 9))"
            command = [candidate, "-c", question]
            if subprocess.run(command, timeout=60, preexec_fn=_become_nobody, stderr=-3).returncode == 0:
                return candidate
    pytest.skip("no Python 3.9 or newer that another user may start")


def _become_nobody() -> None:
    os.setgid(NOBODY)
    os.setuid(NOBODY)


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system without a free byte."""
    folder = tmp_path / "full"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k,mode=777", "tmpfs", str(folder)],
        capture_output=True,
        text=True,
    )
    if mounted.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
    try:
        with contextlib.suppress(OSError), (folder / "filler").open("wb", buffering=0) as handle:
            while True:
                handle.write(b"x" * 4096)
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk(alone: Path, full_disk: Path, clean_environ: Dict[str, str], run: RunAs) -> None:
    """Nothing is written, so nothing is missed; asked to unpack there, it says so and runs all the same."""
    clean_environ["HOME"] = str(full_disk)
    assert_version(run([str(alone), "--version"], env=clean_environ, cwd=full_disk))
    done = run([str(alone), "--version"], env={**clean_environ, "SHIV_ROOT": str(full_disk / "shiv")})
    assert_not_unpacked(done, "No space left")
    assert not list(full_disk.rglob("*.tmp"))


def assert_not_unpacked(done: "subprocess.CompletedProcess[str]", why: str) -> None:
    """It ran from the archive, after one line that says why it was not unpacked."""
    assert done.returncode == 0
    assert done.stdout.startswith("mdello ")
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert why in done.stderr
    assert "running from the archive" in done.stderr


@pytest.fixture
def lockless(tmp_path: Path) -> Dict[str, str]:
    """Variables that let every ``flock`` of a Python fail as on a file system without locks."""
    folder = tmp_path / "lockless"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(
        "import errno, fcntl, os\n"
        "def flock(fd, operation):\n"
        "    raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))\n"
        "fcntl.flock = fcntl.lockf = flock\n"
    )
    return {"PYTHONPATH": str(folder)}


def test_a_file_system_without_locks(
    alone: Path, lockless: Dict[str, str], clean_environ: Dict[str, str], run: RunAs
) -> None:
    """Stock shiv would wait here for ever."""
    assert_version(run([str(alone), "--version"], env={**clean_environ, **lockless}))
    done = run(
        [str(alone), "--version"], env={**clean_environ, **lockless, "SHIV_ROOT": str(alone.parent / "s")}
    )
    assert_not_unpacked(done, "locks do not work there")


# --- serving from such places --------------------------------------------------------------------


class Server:
    """``serve`` of the built file, with one board that everybody may read."""

    def __init__(self, command: List[str], environ: Dict[str, str], board: Path, uid: int = 0) -> None:
        self._port = int(environ["MDELLO_COMPANION_PORT"])
        self._board = board
        board.mkdir()
        (board / "card.md").write_text("---\nuuid: card-1\n---\n")
        (board / "\u00fc.md").write_text("No uuid.\n")
        said = {"role": "user", "content": f'see "{board}/card.md" and /x\n{board}/card.md'}
        edit = {"type": "tool_use", "id": "c", "name": "Write", "input": {"file_path": f"{board}/card.md"}}
        done = {"type": "tool_result", "tool_use_id": "c"}
        messages: List[Dict[str, Any]] = [
            said,
            {"role": "assistant", "content": [edit]},
            {"role": "user", "content": [done]},
        ]
        lines = [json.dumps({"type": each["role"], "message": each}) + "\n" for each in messages]
        (board / "transcript.jsonl").write_text("".join(lines))
        self._process = subprocess.Popen(
            [*command, "serve"],
            env=environ,
            cwd="/",
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=(lambda: _become(uid)) if uid else None,
        )

    def problems(self, once_up: Callable[[], object] = lambda: None) -> List[str]:
        """Use every part of it after ``once_up``, end it; what it says of its health meanwhile."""
        try:
            assert self._process.stdout is not None
            line = self._process.stdout.readline()
            assert line == f"Mdello companion listening at http://127.0.0.1:{self._port}\n"
            once_up()
            return self._use()
        finally:
            self._process.terminate()
            out, err = self._process.communicate(timeout=60)
            assert self._process.returncode == 0, err
            assert out == "" and "Traceback" not in err

    def _use(self) -> List[str]:
        with Talk(self._port) as stream, Talk(self._port) as talk:
            path = f"/events?boardUuid=b&boardPath={quote(str(self._board))}"
            stream.send(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()).head()
            assert stream.event().json() == []
            # A path with quotes is found in a tool call, never in text.
            written = {"tool_name": "Write", "tool_input": {"file_path": f"{self._board}/card.md"}}
            hook = {"hook_event_name": "PostToolUse", "session_id": "s", **written}
            kind = (("Content-Type", "application/json"),)
            assert talk.ask("POST", "/hooks/claude", json.dumps(hook).encode(), kind).status == 202
            told: Any = stream.event().json()
            assert (told["cardUuid"], told["status"]) == ("card-1", "running")
            assert talk.ask("GET", "/associations").json() == [told]
            assert talk.ask("POST", "/settings", b'{"autofocus": true}').status in (200, 500)
            self._use_rare_parts(talk)
            health: Any = talk.ask("GET", "/health").json()
        problems: List[str] = health["problems"]
        return problems

    def _use_rare_parts(self, talk: Talk) -> None:
        """What only some requests need: each must have been imported all the same."""
        kind = (("Content-Type", "application/json"),)
        resume = {"hook_event_name": "SessionStart", "source": "resume", "session_id": "r"}
        resume["transcript_path"] = str(self._board / "transcript.jsonl")
        assert talk.ask("POST", "/hooks/claude", json.dumps(resume).encode(), kind).status == 202
        assert len(json.loads(talk.ask("GET", "/associations").body)) == 2
        deep = b"[" * 30_000 + b"]" * 30_000
        for body, status in ((b"{", 400), (deep, 202), (b"\xff", 400), (b"x" * 70_000, 400)):
            assert talk.ask("POST", "/associations", body).status == status
        plain = {"cardPath": f"{self._board}/\u00fc.md", "sessionId": "s", "status": "idle"}
        assert talk.ask("POST", "/associations", json.dumps(plain).encode()).status == 202
        page = (("Origin", "https://m\xfcller.example"),)
        assert talk.ask("GET", "/settings", headers=page).status == 403
        assert talk.ask("DELETE", "/associations?harness=claude&sessionId=r").status in (200, 500)


def _become(uid: int) -> None:
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)


def test_it_serves_from_a_path_with_spaces_and_through_a_link(
    alone: Path, clean_environ: Dict[str, str], tmp_path: Path
) -> None:
    """A home, a folder and a board with spaces and quotes; nothing is wrong there."""
    folder = tmp_path / 'it\'s a "place" \u00fc'
    folder.mkdir()
    shutil.copy2(alone, folder / "my mdello.pyz")
    (folder / "a link").symlink_to("my mdello.pyz")
    for name in ("my mdello.pyz", "a link"):
        home = folder / f"home of {name}"
        home.mkdir()
        environ = {**clean_environ, "HOME": str(home)}
        assert Server([str(folder / name)], environ, home / "my board").problems() == []
        log = home / ".local" / "state" / "mdello" / "companion.jsonl"
        assert log.read_text().count("card-1") == 1


@pytest.mark.parametrize("deed", ["overwritten", "deleted", "replaced"])
def test_a_server_goes_on_when_its_file_is_gone(
    alone: Path, clean_environ: Dict[str, str], tmp_path: Path, deed: str
) -> None:
    """All that it needs was imported before it served; that it runs old code is said, and no more."""

    def spoil() -> None:
        if deed == "overwritten":
            alone.write_bytes(b"x" * 100_000)
        else:
            alone.unlink()
        if deed == "replaced":
            alone.write_bytes(b"x" * 100_000)

    problems = Server([str(alone)], clean_environ, tmp_path / "board").problems(spoil)
    assert len(problems) == 1 and "was replaced" in problems[0]


@AS_NOBODY
@pytest.mark.parametrize("home", ["read-only", "unset"])
def test_it_serves_without_a_home_to_write_to(
    pyz: Path, for_all: Path, clean_environ: Dict[str, str], home: str
) -> None:
    """Everything works from memory, and it is said that nothing is kept."""
    shutil.copy2(pyz, for_all)
    Path(clean_environ["HOME"]).chmod(0o555)
    if home == "unset":
        del clean_environ["HOME"]
    uid = 54321 if home == "unset" else NOBODY
    command = [_python_for_all(), str(for_all / pyz.name)]
    problems = Server(command, clean_environ, for_all / "board", uid).problems()
    assert any("companion.jsonl" in each for each in problems)
    assert any("companion.json:" in each for each in problems)


def test_it_serves_on_a_full_disk(
    alone: Path, full_disk: Path, clean_environ: Dict[str, str], tmp_path: Path
) -> None:
    """The records wait in memory."""
    environ = {**clean_environ, "HOME": str(full_disk)}
    problems = Server([str(alone)], environ, tmp_path / "board").problems()
    assert any("No space left" in each for each in problems)


def test_it_serves_where_locks_do_not_work(
    alone: Path, lockless: Dict[str, str], clean_environ: Dict[str, str], tmp_path: Path
) -> None:
    """It goes on without them, and keeps everything."""
    assert Server([str(alone)], {**clean_environ, **lockless}, tmp_path / "board").problems() == []
    log = Path(clean_environ["HOME"]) / ".local" / "state" / "mdello" / "companion.jsonl"
    assert log.read_text().count("card-1") == 1


def test_sixteen_servers_at_once(alone: Path, clean_environ: Dict[str, str]) -> None:
    """One serves, fifteen find it and leave with success."""
    starts = [
        subprocess.Popen([str(alone)], env=clean_environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(16)
    ]
    end = time.monotonic() + 120
    while sum(start.poll() is None for start in starts) > 1 and time.monotonic() < end:
        time.sleep(0.05)
    for start in starts:
        start.terminate()
    said = [start.communicate(timeout=60) for start in starts]
    assert [start.returncode for start in starts] == [0] * 16
    assert sorted(b"listening at" in out for out, _ in said) == [False] * 15 + [True]
    assert sum(b"already running" in out for out, _ in said) == 15


# --- strangers of our names ----------------------------------------------------------------------


def test_folders_of_the_same_name_do_not_shadow_ours(
    alone: Path, clean_environ: Dict[str, str], run: RunAs
) -> None:
    """``adapters`` or ``companion`` on PYTHONPATH, in the current folder, or imported already."""
    foreign = alone.parent / "foreign"
    for name in ("adapters", "companion"):
        (foreign / name).mkdir(parents=True)
        (foreign / name / "__init__.py").write_text("raise SystemExit('a stranger was imported')\n")
    (foreign / "mdello.py").write_text("raise SystemExit('a stranger was imported')\n")
    early = alone.parent / "early"
    (early / "companion").mkdir(parents=True)
    (early / "companion" / "__init__.py").write_text("STRANGE = True\n")
    (early / "sitecustomize.py").write_text("import companion\n")
    expected = run([str(alone), "help"], env=clean_environ).stdout
    for path in (str(foreign), f"{early}{os.pathsep}{foreign}"):
        done = run([str(alone), "help"], env={**clean_environ, "PYTHONPATH": path}, cwd=foreign)
        assert (done.returncode, done.stdout, done.stderr) == (0, expected, "")


# --- shiv's own variables ------------------------------------------------------------------------


def test_shiv_root_unpacks_there_and_runs_from_there(
    alone: Path, clean_environ: Dict[str, str], run: RunAs
) -> None:
    """The documented variable does what shiv documents; the second run uses what the first unpacked."""
    root = alone.parent / "root"
    environ = {**clean_environ, "SHIV_ROOT": str(root)}
    where = "import mdello, sys; print(mdello.__file__)"
    for _ in range(2):
        assert_version(run([str(alone), "--version"], env=environ))
        done = run([str(alone), "-c", where], env={**environ, "SHIV_INTERPRETER": "1"})
        assert done.stdout.startswith(str(root)), done.stderr
    assert len(list(root.glob("mdello.pyz_*"))) == 1
    assert everything_below(Path(clean_environ["HOME"])) == []


def test_an_unpacked_tree_that_lost_files_is_unpacked_again(
    alone: Path, clean_environ: Dict[str, str], run: RunAs
) -> None:
    """A cleaner of old files took a part: stock shiv would fail from then on."""
    root = alone.parent / "root"
    environ = {**clean_environ, "SHIV_ROOT": str(root)}
    assert_version(run([str(alone), "--version"], env=environ))
    for lost in root.rglob("mdello.py"):
        lost.unlink()
    assert_version(run([str(alone), "--version"], env=environ))
    assert list(root.rglob("mdello.py"))


def test_a_killed_unpacking_is_begun_again(alone: Path, clean_environ: Dict[str, str], run: RunAs) -> None:
    """SIGKILL at any moment of the first run; the next one works and leaves nothing half done."""
    for delay in range(6):
        root = alone.parent / f"root{delay}"
        environ = {**clean_environ, "SHIV_ROOT": str(root)}
        process = subprocess.Popen(
            [sys.executable, str(alone), "--version"], env=environ, stdout=subprocess.DEVNULL
        )
        time.sleep(0.02 + delay * 0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert_version(run([str(alone), "--version"], env=environ))
        assert not list(root.glob("*.tmp"))


def test_shiv_force_extract(alone: Path, clean_environ: Dict[str, str], run: RunAs) -> None:
    """Below ``~/.shiv`` without a root; ``0`` or nothing does not force anything."""
    for value in ("", "0", "false"):
        assert_version(run([str(alone), "--version"], env={**clean_environ, "SHIV_FORCE_EXTRACT": value}))
    assert_version(run([str(alone), "--version"], env={**clean_environ, "SHIV_FORCE_EXTRACT": "1"}))
    assert (Path(clean_environ["HOME"]) / ".shiv").is_dir()


@pytest.mark.parametrize("name", ["SHIV_ENTRY_POINT", "SHIV_MODULE"])
def test_another_entry_point(alone: Path, clean_environ: Dict[str, str], run: RunAs, name: str) -> None:
    """Unpacked, or from the archive where the root cannot be used."""
    for root in (str(alone.parent / "root"), "/proc/no/such"):
        environ = {**clean_environ, name: "platform:python_version", "SHIV_ROOT": root}
        done = run([sys.executable, str(alone)], env=environ)
        assert done.stderr.splitlines()[-1] == sys.version.split()[0]  # As sys.exit prints a text.


def test_the_console_script(alone: Path, clean_environ: Dict[str, str], run: RunAs) -> None:
    """Ours is ``mdello``."""
    environ = {**clean_environ, "SHIV_CONSOLE_SCRIPT": "mdello", "SHIV_ROOT": str(alone.parent / "root")}
    assert_version(run([str(alone), "--version"], env=environ))
    done = run([str(alone), "--version"], env={**environ, "SHIV_ROOT": "/proc/no/such"})
    assert_not_unpacked(done, "/proc/no")


def test_empty_variables_count_as_unset(alone: Path, clean_environ: Dict[str, str], run: RunAs) -> None:
    """Nothing is unpacked, our own entry point runs."""
    names = ("ROOT", "ENTRY_POINT", "MODULE", "CONSOLE_SCRIPT", "INTERPRETER", "FORCE_EXTRACT")
    environ = {**clean_environ, **{f"SHIV_{name}": "" for name in names}}
    assert_version(run([str(alone), "--version"], env=environ))
    assert everything_below(Path(clean_environ["HOME"])) == []
    environ["SHIV_ROOT"] = str(alone.parent / "root")
    assert_version(run([str(alone), "--version"], env=environ))


def test_a_root_of_somebody_else_is_refused(alone: Path, clean_environ: Dict[str, str], run: RunAs) -> None:
    """Files planted there would run with our rights: writable for all, or another user's."""
    root = alone.parent / "shared"
    root.mkdir()
    root.chmod(0o777)
    done = run([str(alone), "--version"], env={**clean_environ, "SHIV_ROOT": str(root)})
    assert_not_unpacked(done, "can be written by everybody")
    if os.getuid() == 0:
        root.chmod(0o755)
        os.chown(root, NOBODY, NOBODY)
        done = run([str(alone), "--version"], env={**clean_environ, "SHIV_ROOT": str(root)})
        assert_not_unpacked(done, "belongs to another user")
    assert everything_below(root) == []


def test_a_lock_that_is_never_released_is_not_waited_for_for_ever(
    alone: Path, clean_environ: Dict[str, str], run: RunAs
) -> None:
    """A stopped process holds shiv's lock; ours gives up and runs from the archive."""
    root = alone.parent / "root"
    environ = {**clean_environ, "SHIV_ROOT": str(root)}
    assert_version(run([str(alone), "--version"], env=environ))
    lock = next(root.glob(".*_lock"))
    shutil.rmtree(next(root.glob("mdello.pyz_*")))
    fcntl = pytest.importorskip("fcntl")
    with lock.open("r+") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        assert_not_unpacked(run([str(alone), "--version"], env=environ), "locked by another process")
