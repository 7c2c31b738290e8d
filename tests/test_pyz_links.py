"""Links through the built file: its own process, a gh and a jira named by the environment."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Dict, Iterator, List
from urllib.parse import quote

import pytest

from tests.companion.web.talk import PATIENCE_S, Talk, eventually
from tests.conftest import RunAs
from tests.fakes.fake_viewer import FakeViewer, pull, ticket


@pytest.fixture
def gh(tmp_path: Path) -> FakeViewer:
    """A gh."""
    return FakeViewer(tmp_path / "bin", "gh")


@pytest.fixture
def environ(clean_environ: Dict[str, str], gh: FakeViewer) -> Dict[str, str]:
    """Where both programs are."""
    jira = FakeViewer(gh.folder, "jira")
    return {**clean_environ, "GH_PATH": str(gh.path), "JIRA_PATH": str(jira.path)}


@pytest.fixture
def server(pyz: Path, environ: Dict[str, str]) -> Iterator["subprocess.Popen[bytes]"]:
    """The companion, serving."""
    process = subprocess.Popen(
        [sys.executable, str(pyz), "serve"], env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None and process.stdout.readline().startswith(b"Mdello companion listening")
    yield process
    process.kill()
    process.communicate()


def subscribe(port: str, urls: List[str]) -> Talk:
    """An open stream, its first event read."""
    talk = Talk(int(port))
    query = "&".join(f"url={quote(url, safe='')}" for url in urls)
    talk.send(f"GET /enrichments?{query} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    assert talk.head()[0] == 200
    assert talk.event().json() == {"items": [], "errors": []}
    return talk


def test_fifty_links(
    server: "subprocess.Popen[bytes]", environ: Dict[str, str], gh: FakeViewer, pyz: Path, run: RunAs
) -> None:
    """All are told, one fails; settings, health and doctor know of the programs and of the failure."""
    gh.answer(pull(7), exit=4, stderr="To get started with GitHub CLI, please run: gh auth login")
    urls = [pull(number) for number in range(30)] + [ticket(number) for number in range(20)]
    told: List[Dict[str, object]] = []
    with subscribe(environ["MDELLO_COMPANION_PORT"], urls) as talk:
        for _ in urls:
            event = talk.event().json()
            assert isinstance(event, dict)
            told += event["items"] + event["errors"]
    assert sorted(str(each["url"]) for each in told) == sorted(urls)
    assert [each["url"] for each in told if "error" in each] == [pull(7)]
    assert gh.most_at_once() <= 8
    with Talk(int(environ["MDELLO_COMPANION_PORT"])) as talk:
        settings = talk.ask("GET", "/settings").json()
        health = talk.ask("GET", "/health").json()
    assert isinstance(settings, dict) and isinstance(health, dict)
    assert (settings["githubEnabled"], settings["jiraEnabled"], settings["herdrEnabled"]) == (
        True,
        True,
        False,
    )
    assert (health["lookups"]["github"]["failed"], health["lookups"]["jira"]["succeeded"]) == (1, 20)
    gh.answer("*", exit=4, stderr="To get started with GitHub CLI, please run: gh auth login")
    with subscribe(environ["MDELLO_COMPANION_PORT"], [pull(99)]) as talk:
        assert '"lookup_failed"' in talk.event().data
    told_by_doctor = run([sys.executable, str(pyz), "doctor", "--json"], env=environ).stdout
    assert "gh auth login" in json.dumps(
        [each for each in json.loads(told_by_doctor)["findings"] if each["state"] == "unknown"]
    )


def test_it_stops_with_programs_that_hang(
    server: "subprocess.Popen[bytes]", environ: Dict[str, str], gh: FakeViewer
) -> None:
    """In order, with nothing said and nobody left."""
    gh.answer("*", hang=True)
    with subscribe(environ["MDELLO_COMPANION_PORT"], [pull(number) for number in range(20)]) as talk:
        eventually(lambda: len(gh.calls()) >= 4)
        server.send_signal(signal.SIGTERM)
        _, said = server.communicate(timeout=PATIENCE_S)
        assert (server.returncode, said.count(b"Traceback")) == (0, 0)
        assert talk.ended()
    assert not gh.alive()
