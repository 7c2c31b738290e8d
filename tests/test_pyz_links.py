"""Outside programs through the built file: its own process, with a gh, a jira and a herdr of ours."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List
from urllib.parse import quote

import pytest

from tests.companion.assignment.world import World, item, wait_until
from tests.companion.web.talk import PATIENCE_S, Talk, eventually
from tests.conftest import RunAs
from tests.fakes.fake_herdr import FakeHerdr
from tests.fakes.fake_viewer import FakeViewer, issue, pull, ticket

# The file's own modules with shorter times: nobody wants to wait for half a minute, five times.
_IMPATIENT = """
import sys
sys.path.insert(0, sys.argv[1] + "/site-packages")
from companion.assignment.run import Runner
from companion.commands import dispatch
from companion.enrich.lookups import Lookups
from companion.herdr.focus import focus
from companion.herdr.labels import HerdrLabels
assert HerdrLabels.__init__.__defaults__ == (0.5, 5.0)
assert Lookups.__init__.__defaults__ == (30.0, 15.0) and focus.__defaults__ == (10.0,)
assert Runner.__init__.__defaults__[-1] == 120.0
Lookups.__init__.__defaults__ = (0.1, 1.0)
focus.__defaults__ = (1.0,)
Runner.__init__.__defaults__ = (*Runner.__init__.__defaults__[:-1], 1.0)
raise SystemExit(dispatch.run(["serve"]))
"""
_FOCUS = b'{"action":"focus","harness":"claude","sessionId":"s-1"}'


@pytest.fixture
def gh(tmp_path: Path) -> FakeViewer:
    """A gh."""
    return FakeViewer(tmp_path / "bin", "gh")


@pytest.fixture
def jira(gh: FakeViewer) -> FakeViewer:
    """A jira beside it."""
    return FakeViewer(gh.folder, "jira")


@pytest.fixture
def herdr(tmp_path: Path) -> FakeHerdr:
    """A herdr in which one session runs."""
    made = FakeHerdr(tmp_path / "herdr")
    made.run_session("s-1")
    return made


@pytest.fixture
def environ(clean_environ: Dict[str, str], gh: FakeViewer, jira: FakeViewer) -> Dict[str, str]:
    """Where gh and jira are."""
    return {**clean_environ, "GH_PATH": str(gh.path), "JIRA_PATH": str(jira.path)}


Serve = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def serve(pyz: Path, environ: Dict[str, str]) -> Iterator[Serve]:
    """Starts the companion; ``impatient=True``: with short times."""
    started: List[subprocess.Popen[bytes]] = []

    def start(impatient: bool = False) -> "subprocess.Popen[bytes]":
        command = ["-c", _IMPATIENT, str(pyz)] if impatient else [str(pyz), "serve"]
        process = subprocess.Popen(
            [sys.executable, *command],
            env=environ,
            cwd=environ["HOME"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"Mdello companion listening")
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def port(environ: Dict[str, str]) -> int:
    """Where it serves."""
    return int(environ["MDELLO_COMPANION_PORT"])


def subscribe(port: int, urls: List[str]) -> Talk:
    """An open stream, its first event read."""
    talk = Talk(port)
    query = "&".join(f"url={quote(url, safe='')}" for url in urls)
    talk.send(f"GET /enrichments?{query} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    assert talk.head()[0] == 200
    assert talk.event().json() == {"items": [], "errors": []}
    return talk


def settled(talk: Talk, count: int) -> List[str]:
    """The URLs of so many events with one outcome each; a failed one begins with ``!``."""
    told = []
    for _ in range(count):
        event: Any = talk.event().json()
        assert len(event["items"]) + len(event["errors"]) == 1
        told += [each["url"] for each in event["items"]]
        told += ["!" + each["url"] for each in event["errors"] if each["error"] == "lookup_failed"]
    return told


def until(talk: Talk, *wanted: str) -> None:
    """Read on until all these outcomes have come; a slow machine may bring others before."""
    left = set(wanted)
    for _ in range(300):
        left -= set(settled(talk, 1))
        if not left:
            return
    raise AssertionError(f"never told: {left}")


def ask(port: int, method: str, path: str, body: Any = None) -> Any:
    """Status and JSON value of an answer."""
    with Talk(port) as talk:
        answer = talk.ask(method, path, body)
    return answer.status, answer.json()


# --- links ---------------------------------------------------------------------------------------


def test_fifty_links(
    serve: Serve, port: int, environ: Dict[str, str], gh: FakeViewer, pyz: Path, run: RunAs
) -> None:
    """All are told, one fails; settings, health and doctor know of the programs and of the failure."""
    serve()
    gh.answer(pull(7), exit=4, stderr="To get started with GitHub CLI, please run: gh auth login")
    urls = [pull(number) for number in range(30)] + [ticket(number) for number in range(20)]
    with subscribe(port, urls) as talk:
        told = settled(talk, 50)
    assert sorted(each.lstrip("!") for each in told) == sorted(urls)
    assert [each for each in told if each.startswith("!")] == ["!" + pull(7)]
    assert gh.most_at_once() <= 8
    _, settings = ask(port, "GET", "/settings")
    _, health = ask(port, "GET", "/health")
    enabled = (settings["githubEnabled"], settings["jiraEnabled"], settings["herdrEnabled"])
    assert enabled == (True, True, False)
    assert (health["lookups"]["github"]["failed"], health["lookups"]["jira"]["succeeded"]) == (1, 20)
    gh.answer("*", exit=4, stderr="To get started with GitHub CLI, please run: gh auth login")
    with subscribe(port, [pull(99)]) as talk:
        assert settled(talk, 1) == ["!" + pull(99)]
    told_by_doctor = run([sys.executable, str(pyz), "doctor", "--json"], env=environ).stdout
    assert "gh auth login" in json.dumps(
        [each for each in json.loads(told_by_doctor)["findings"] if each["state"] == "unknown"]
    )
    # Who logs in need not restart anything.
    gh.answer("*")
    with subscribe(port, [pull(99)]) as talk:
        assert settled(talk, 1) == [pull(99)]


def test_outcomes_come_in_the_order_in_which_they_settle(
    serve: Serve, port: int, gh: FakeViewer, jira: FakeViewer
) -> None:
    """Of both programs."""
    serve()
    for viewer in (gh, jira):
        viewer.answer("*", wait=True)
    with subscribe(port, [pull(1), ticket(2), issue(3)]) as talk:
        for url, mark in ((issue(3), issue(3)), (ticket(2), "SHOP-2"), (pull(1), pull(1))):
            gh.go_on(mark)
            assert settled(talk, 1) == [url]


def test_garbage_is_a_failed_lookup_of_that_link_alone(
    serve: Serve, port: int, gh: FakeViewer, jira: FakeViewer
) -> None:
    """Whatever is printed, and however much of it; the log stays quiet."""
    server = serve()
    garbage: List[Dict[str, object]] = [
        {"text": ""},
        {"text": "<html>rate limit</html>"},
        {"text": "[" * 100_000},
        {"text": '{"number": %s}' % ("9" * 1_000_000)},
        {"hex": "fffe00c3"},
        {"fields": {"title": ["x"], "key": 7}},
        {"flood": True},
        {"exit": 1, "stderr": "\x1b[31mboom"},
    ]
    for number, how in enumerate(garbage):
        gh.answer(pull(number), **how)
        jira.answer(f"SHOP-{number}", **how)
    bad = [make(number) for number in range(len(garbage)) for make in (pull, ticket)]
    with subscribe(port, [*bad, pull(99), ticket(99)]) as talk:
        told = settled(talk, len(bad) + 2)
    assert sorted(told) == sorted([*("!" + url for url in bad), pull(99), ticket(99)])
    server.terminate()
    assert server.communicate(timeout=PATIENCE_S)[1].count(b"Traceback") == 0


def test_rounds_go_on_while_somebody_listens_and_hanging_lookups_are_given_up(
    serve: Serve, port: int, gh: FakeViewer, jira: FakeViewer
) -> None:
    """One that hangs has failed after its time; a later round brings it. Nobody listens: no rounds."""
    serve(impatient=True)
    with subscribe(port, [pull(1)]) as talk:
        for _ in range(3):
            until(talk, pull(1))
        jira.answer("SHOP-1", hang=True)
        with subscribe(port, [ticket(1), ticket(2)]) as other:
            until(other, ticket(2), "!" + ticket(1))
            jira.answer("SHOP-1")
            until(other, ticket(1))
    assert ask(port, "GET", "/health")[1]["lookups"]["jira"]["failed"] >= 1

    def quiet() -> bool:
        before = len(gh.calls()) + len(jira.calls())
        time.sleep(0.5)  # Five times the pause between two rounds.
        return len(gh.calls()) + len(jira.calls()) == before

    eventually(quiet)


def test_links_that_hang_delay_nobody(
    serve: Serve, port: int, environ: Dict[str, str], gh: FakeViewer, jira: FakeViewer, herdr: FakeHerdr
) -> None:
    """Reports, streams, labels and a click are served beside fifty of them; so is the end."""
    environ["HERDR_PATH"] = str(herdr.path)
    server = serve()
    for viewer in (gh, jira):
        viewer.answer("*", hang=True)
    board = Path(environ["HOME"], "board")
    board.mkdir()
    (board / "a.md").write_text("---\nuuid: card-a\n---\n")
    links = [pull(number) for number in range(25)] + [ticket(number) for number in range(25)]
    with subscribe(port, links) as stalled, Talk(port) as stream:
        eventually(lambda: len(gh.calls()) + len(jira.calls()) >= 6)
        stream.send(f"GET /events?boardUuid=b&boardPath={board} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        stream.head()
        assert stream.event().json() == []
        report = {"cardPath": f"{board}/a.md", "harness": "claude", "sessionId": "s-1", "status": "running"}
        assert ask(port, "POST", "/associations", json.dumps(report).encode())[0] == 202
        record: Any = stream.event().json()
        while "herdrTab" not in record:
            record = stream.event().json()
        assert (record["status"], record["herdrTab"]) == ("running", "Basket")
        assert ask(port, "POST", "/actions", _FOCUS) == (200, {"ok": True})
        assert ask(port, "GET", "/settings")[1]["herdrEnabled"] is True
        server.send_signal(signal.SIGTERM)
        _, said = server.communicate(timeout=PATIENCE_S)
        assert (server.returncode, said.count(b"Traceback")) == (0, 0)
        assert stalled.ended()
    assert not gh.alive()
    assert gh.most_at_once() <= 6


# --- actions -------------------------------------------------------------------------------------


def test_a_herdr_of_every_kind(serve: Serve, port: int, environ: Dict[str, str], herdr: FakeHerdr) -> None:
    """In order, not there, garbage, failing, hanging, gone: each has its answer, and the next click works."""
    environ["HERDR_PATH"] = str(herdr.path)
    server = serve()
    assert ask(port, "POST", "/actions", _FOCUS) == (200, {"ok": True})
    assert herdr.calls() == ["agent list", "agent focus w1:p1", "tab focus w1:t1"]
    other = _FOCUS.replace(b"s-1", b"s-2")
    assert ask(port, "POST", "/actions", other) == (404, {"error": "session_not_found"})
    failed = (500, {"error": "herdr_command_failed"})
    for modes in ({"agent_list": "garbage"}, {"tab": "fail"}):
        herdr.misbehave(**modes)
        assert ask(port, "POST", "/actions", _FOCUS) == failed, modes
    server.terminate()
    server.wait(PATIENCE_S)
    serve(impatient=True)
    for modes in ({"agent_focus": "hang"}, {"agent_list": "hang"}):
        herdr.misbehave(**modes)
        assert ask(port, "POST", "/actions", _FOCUS) == failed, modes
    herdr.misbehave()
    eventually(lambda: ask(port, "POST", "/actions", _FOCUS) == (200, {"ok": True}))
    herdr.path.unlink()
    assert ask(port, "POST", "/actions", _FOCUS) == failed


# --- the assignment job --------------------------------------------------------------------------


@pytest.fixture
def job(environ: Dict[str, str]) -> Iterator[World]:
    """A board in its home, with a job for every second, and a gh that searches."""
    made = World(Path(environ["HOME"]))
    made.configure(schedule="* * * * * *")
    environ.update(GH_PATH=made.environ["GH_PATH"], FAKE_GH=made.environ["FAKE_GH"])
    yield made
    made.programs.close()


def test_the_job_with_a_gh_of_every_kind(serve: Serve, port: int, job: World) -> None:
    """Garbage and a hanging search are told, write nothing, and the next run makes up for it."""

    def last() -> Any:
        return ask(port, "GET", "/health")[1]["assignment"]["lastRun"] or {"failure": None}

    job.answer(issues=[item(1)], reviews={"raw": "<html>"})
    serve(impatient=True)
    wait_until(lambda: "not JSON" in str(last()["failure"]))
    job.answer(issues=[item(1)], prs=[item(2, "pull")], reviews={"hang": True})
    wait_until(lambda: "did not end within 1 s" in str(last()["failure"]))
    assert job.cards() == []
    job.answer(issues=[item(1)], prs=[item(2, "pull")], reviews=[item(2, "pull")])
    wait_until(lambda: last()["failure"] is None and len(job.cards()) == 2)
    assert job.cards() == ["issue-assigned-thing-1.md", "review-requested-thing-2.md"]
    searches = [call[1:4] for call in job.calls()[-3:]]
    assert sorted(search[0] for search in searches) == ["issues", "prs", "prs"]


def test_several_runs_at_once_write_each_card_once(
    pyz: Path, environ: Dict[str, str], job: World, run: RunAs
) -> None:
    """Whoever comes second is told so, or finds all of it on the board."""
    job.answer(issues=[item(number) for number in range(1, 61)])
    runs = [
        subprocess.Popen(
            [sys.executable, str(pyz), "assign"], env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for _ in range(4)
    ]
    ends = [(each.communicate(timeout=120)[1], each.returncode) for each in runs]
    assert (b"", 0) in ends
    assert all(code == 0 or b"another run is at work" in said for said, code in ends)
    assert len(job.cards()) == 60
    assert (
        json.loads(run([sys.executable, str(pyz), "assign", "--json"], env=environ).stdout)["skipped"] == 60
    )
