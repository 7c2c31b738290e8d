"""Outside programs, real ones: small shell scripts that behave, hang, babble, and leave children behind."""

import os
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from pathlib import Path
from typing import Callable, Dict, Iterator, List

import pytest

from companion.core.errors import ProgramFailed
from companion.core.programs import Programs

PATIENCE_S = 20.0
PATH = {"PATH": os.environ.get("PATH", os.defpath)}


@pytest.fixture
def programs() -> Iterator[Programs]:
    """With the usual number of places."""
    made = Programs(PATH)
    yield made
    made.close()


def sh(script: str) -> List[str]:
    """A command that runs a shell script."""
    return ["/bin/sh", "-c", script]


def executable(path: Path, text: str = "#!/bin/sh\n", mode: int = 0o755) -> str:
    """A program file; its path."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def alive(pid: int) -> bool:
    """Whether a process lives; a zombie does not."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout
    return bool(state.strip()) and not state.startswith("Z")


def eventually(what: Callable[[], bool]) -> None:
    """Wait until it is true."""
    end = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.01)


# --- where a program is --------------------------------------------------------------------------


def test_a_variable_names_the_program_unchecked() -> None:
    """Whatever it says; an empty one does not count."""
    assert Programs({"GH_PATH": "/no/such/thing", "PATH": ""}).path("gh") == "/no/such/thing"
    assert Programs({"GH_PATH": ""}).path("gh") is None


def test_the_first_executable_file_on_the_path_counts(tmp_path: Path) -> None:
    """A folder of that name, and a file that cannot be run, are passed over."""
    executable(tmp_path / "plain" / "jira", mode=0o644)
    (tmp_path / "folder" / "jira").mkdir(parents=True)
    first = executable(tmp_path / "first" / "jira")
    executable(tmp_path / "second" / "jira")
    folders = [tmp_path / name for name in ("missing", "plain", "folder", "first", "second")]
    assert Programs({"PATH": os.pathsep.join(map(str, folders))}).path("jira") == first


def test_an_empty_element_of_the_path_is_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the program is then run from there, whatever stands later on the path."""
    executable(tmp_path / "herdr", "#!/bin/sh\necho here\n")
    monkeypatch.chdir(tmp_path)
    found = Programs({"PATH": "/no/such/folder" + os.pathsep}).path("herdr")
    assert found is not None
    assert Programs({}).run([found], PATIENCE_S) == "here\n"


@pytest.mark.parametrize("environ", [{}, {"PATH": ""}, {"PATH": "/no/such/folder"}])
def test_without_a_path_or_a_match_there_is_none(environ: Dict[str, str]) -> None:
    """Not an error."""
    assert Programs(environ).path("gh") is None


def test_a_program_installed_later_is_found(tmp_path: Path) -> None:
    """Without a restart."""
    programs = Programs({"PATH": str(tmp_path)})
    assert programs.path("gh") is None
    assert programs.path("gh") != executable(tmp_path / "gh") == programs.path("gh")


# --- one run -------------------------------------------------------------------------------------


def test_a_run_gives_what_was_printed(programs: Programs, tmp_path: Path) -> None:
    """Only stdout; stdin is empty, whatever ours holds."""
    ours, kept = os.open(executable(tmp_path / "ours", "ours"), os.O_RDONLY), os.dup(0)
    try:
        os.dup2(ours, 0)
        assert programs.run(sh("echo out; echo err >&2; cat"), PATIENCE_S) == "out\n"
    finally:
        os.dup2(kept, 0)
        os.close(kept)
        os.close(ours)


def test_bytes_that_are_no_text_do_no_harm(programs: Programs) -> None:
    """They become replacement characters."""
    assert programs.run(sh(r"printf 'a\377\303b\0c'"), PATIENCE_S) == "a\ufffd\ufffdb\0c"


def test_much_output_on_both_pipes_arrives(programs: Programs) -> None:
    """More than the pipes hold, at the same time."""
    script = "head -c 1000000 /dev/zero >&2 & head -c 1000000 /dev/zero; wait"
    assert len(programs.run(sh(script), PATIENCE_S)) == 1_000_000


def test_the_size_of_the_output_is_bounded(programs: Programs) -> None:
    """The limit itself is still good; one that never stops is ended."""
    assert programs.run(sh("printf 12345"), PATIENCE_S, most_bytes=5) == "12345"
    with pytest.raises(ProgramFailed, match=r"^sh prints more than 4 bytes$"):
        programs.run(sh("printf 12345"), PATIENCE_S, most_bytes=4)
    with pytest.raises(ProgramFailed, match="prints more than 1000 bytes"):
        programs.run(["yes"], PATIENCE_S, most_bytes=1_000)


def test_what_is_kept_of_complaints_is_bounded(programs: Programs) -> None:
    """A program may complain for as long as it likes."""
    tracemalloc.start()
    try:
        assert programs.run(sh("head -c 30000000 /dev/zero >&2; echo out"), PATIENCE_S) == "out\n"
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


def test_a_failure_says_what_the_program_said(programs: Programs) -> None:
    """In one line, the end of it, without control characters."""
    with pytest.raises(ProgramFailed) as told:
        programs.run(sh(r"printf 'not\033[31m logged\n\n in\377' >&2; exit 4"), PATIENCE_S)
    assert str(told.value) == "sh failed (exit code 4): not [31m logged in\ufffd"
    with pytest.raises(ProgramFailed) as told:
        programs.run(sh("head -c 100000 /dev/zero | tr '\\0' x >&2; echo end >&2; exit 1"), PATIENCE_S)
    assert str(told.value).endswith("xxxend") and len(str(told.value)) < 350
    with pytest.raises(ProgramFailed) as told:
        programs.run(sh("kill -11 $$"), PATIENCE_S)
    assert str(told.value) == "sh failed (signal 11)"


def test_a_program_that_cannot_be_started_is_an_answer(programs: Programs, tmp_path: Path) -> None:
    """Missing, a folder, no program at all, an argument that no program can get."""
    for argv, reason in (
        ([str(tmp_path / "gh")], "gh cannot be started: No such file or directory"),
        ([str(tmp_path)], "cannot be started: Permission denied"),
        ([executable(tmp_path / "junk", "\x7fjunk")], "junk cannot be started: Exec format error"),
        (["/bin/echo", "a\0b"], "echo cannot be started: embedded null byte"),
        (["/bin/echo", "\ud83d"], "echo cannot be started: "),
    ):
        with pytest.raises(ProgramFailed, match=reason):
            programs.run(argv, PATIENCE_S)
    assert programs.run(["/bin/echo", "fine"], PATIENCE_S) == "fine\n"


def test_a_program_that_may_not_be_run_is_an_answer(programs: Programs, tmp_path: Path) -> None:
    """Told by a variable, it is not checked before."""
    with pytest.raises(ProgramFailed, match=r"^gh cannot be started: Permission denied$"):
        programs.run([executable(tmp_path / "gh", mode=0o600)], PATIENCE_S)


def test_children_see_our_environment_but_what_was_meant_for_us() -> None:
    """No sockets of the service manager, no debug switch, no Python settings, no forced colours."""
    sockets = ("LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "LISTEN_PIDFDID")
    python = ("PYTHONPATH", "PYTHONHOME", "SHIV_ROOT", "__PYVENV_LAUNCHER__")
    colours = ("CLICOLOR_FORCE", "FORCE_COLOR", "GH_FORCE_TTY")
    foreign = dict.fromkeys(("DEBUG", *sockets, *python, *colours), "1")
    own = {**PATH, "GH_TOKEN": "dummy", "HOME": "/h", "LISTENER": "stays"}
    printed = Programs({**own, **foreign}).run(["env"], PATIENCE_S)
    assert dict(line.split("=", 1) for line in printed.splitlines()) == own


# --- time, groups, places ------------------------------------------------------------------------


def test_a_program_that_hangs_is_killed_with_all_its_children(programs: Programs, tmp_path: Path) -> None:
    """Also those that ignore a polite request."""
    script = f"trap '' TERM; sh -c 'trap \"\" TERM; echo $$ > {tmp_path}/pid; sleep 600' & sleep 600"
    with pytest.raises(ProgramFailed, match=r"^sh did not end within 0\.5 s$"):
        programs.run(sh(script), 0.5)
    child = int((tmp_path / "pid").read_text())
    eventually(lambda: not alive(child))


def test_a_child_that_holds_the_pipes_does_not_delay_the_answer(programs: Programs, tmp_path: Path) -> None:
    """The answer is complete once the program itself has ended; the child goes with it."""
    script = f"sleep 600 & echo $! > {tmp_path}/pid; echo answer"
    assert programs.run(sh(script), 600.0) == "answer\n"
    eventually(lambda: not alive(int((tmp_path / "pid").read_text())))


def test_a_child_that_went_its_own_way_does_not_delay_us_either(programs: Programs, tmp_path: Path) -> None:
    """One that left the group keeps the pipe: the answer, and the limit, come all the same."""
    pids = [tmp_path / "first", tmp_path / "second"]
    stray = "import os,sys,time; os.setsid(); open(sys.argv[1],'w').write(str(os.getpid())); time.sleep(600)"
    first, second = (
        f'{sys.executable} -c "{stray}" {pid} & while [ ! -s {pid} ]; do sleep 0.01; done' for pid in pids
    )
    try:
        assert programs.run(sh(f"{first}; echo answer"), 600.0) == "answer\n"
        with pytest.raises(ProgramFailed, match="did not end"):
            programs.run(sh(f"{second}; sleep 600"), 2.0)
    finally:
        for pid in pids:
            if pid.exists():  # On a slow machine the second one may not have come so far.
                os.kill(int(pid.read_text()), signal.SIGKILL)


def test_a_program_that_closes_its_pipes_and_goes_on_is_waited_for(programs: Programs) -> None:
    """Until its time is over."""
    with pytest.raises(ProgramFailed, match=r"failed \(exit code 3\)"):
        programs.run(sh("exec >&- 2>&-; sleep 0.2; exit 3"), PATIENCE_S)
    with pytest.raises(ProgramFailed, match="did not end"):
        programs.run(sh("exec >&- 2>&-; sleep 600"), 0.2)


def test_no_zombies_are_left(programs: Programs) -> None:
    """Whatever way a run ends."""
    programs.run(["true"], PATIENCE_S)
    for script, limit_s in (("exit 1", PATIENCE_S), ("sleep 600", 0.05)):
        with pytest.raises(ProgramFailed):
            programs.run(sh(script), limit_s)
    listed = subprocess.run(["ps", "-A", "-o", "ppid=,stat="], capture_output=True, text=True).stdout
    ours = [state for parent, state in map(str.split, listed.splitlines()) if parent == str(os.getpid())]
    assert not [state for state in ours if state.startswith("Z")]


class Crowd:
    """Many runs at once, each on its own thread."""

    def __init__(self, programs: Programs, argv: List[str], count: int, limit_s: float) -> None:
        self.answers: List[str] = []
        self._programs, self._argv, self._limit_s = programs, argv, limit_s
        self._threads = [threading.Thread(target=self._one) for _ in range(count)]
        for thread in self._threads:
            thread.start()

    def _one(self) -> None:
        try:
            self.answers.append(self._programs.run(self._argv, self._limit_s))
        except ProgramFailed as exc:
            self.answers.append(f"failed: {exc}")

    def wait(self) -> List[str]:
        """All answers."""
        for thread in self._threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive()
        return self.answers


def test_only_so_many_run_at_once(tmp_path: Path) -> None:
    """Each of twelve counts those that run beside it."""
    programs = Programs(PATH, at_once=3)
    script = f"touch {tmp_path}/$$; sleep 0.05; ls {tmp_path} | wc -l; rm {tmp_path}/$$"
    answers = Crowd(programs, sh(script), 12, PATIENCE_S).wait()
    assert len(answers) == 12 and max(int(answer) for answer in answers) <= 3


def test_waiting_for_a_place_has_an_end() -> None:
    """The same as the run itself; the place is free again afterwards."""
    programs = Programs(PATH, at_once=1)
    answers = Crowd(programs, sh("sleep 600"), 2, 0.3).wait()
    assert sorted(answers)[0] == "failed: sh did not end within 0.3 s"
    assert programs.run(["echo", "free"], PATIENCE_S) == "free\n"
    hog = Crowd(programs, sh("sleep 600"), 1, 600.0)
    eventually(lambda: bool(programs._running))
    with pytest.raises(ProgramFailed, match=r"^true did not get its turn within 0\.1 s$"):
        programs.run(["true"], 0.1)
    programs.close()
    hog.wait()


def test_closing_ends_all_and_nothing_starts_afterwards(tmp_path: Path) -> None:
    """Those that run, those that wait for a place, and those that come later; a second time too."""
    programs = Programs(PATH, at_once=2)
    crowd = Crowd(programs, sh(f"touch {tmp_path}/$$; sleep 600"), 5, 600.0)
    eventually(lambda: len(list(tmp_path.iterdir())) == 2)
    programs.close()
    assert programs._taken == 0, "it did not wait for those that end programs"
    assert not [pid for pid in tmp_path.iterdir() if alive(int(pid.name))]
    assert crowd.wait() == ["failed: sh is not run: the companion stops"] * 5
    with pytest.raises(ProgramFailed, match="the companion stops"):
        programs.run(["true"], PATIENCE_S)
    programs.close()


def test_closing_in_the_middle_of_many_starts_leaves_nothing(tmp_path: Path) -> None:
    """Over and over, at whatever moment."""
    for number in range(10):
        programs = Programs(PATH)
        crowd = Crowd(programs, sh(f"echo $$ >> {tmp_path}/pids; sleep 600"), 16, 600.0)
        time.sleep(number * 0.002)
        programs.close()
        crowd.wait()
    pids = (tmp_path / "pids").read_text().split() if (tmp_path / "pids").exists() else []
    assert not [pid for pid in pids if alive(int(pid))]
