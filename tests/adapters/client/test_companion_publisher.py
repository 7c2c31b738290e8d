"""Publishing: all of it and in order to a companion that answers, the newest to one that comes back."""

import http.server
import shutil
import ssl
import threading
from pathlib import Path
from typing import Any, Dict, Iterator, List

import pytest

from tests.adapters.client.conftest import Publishing
from tests.adapters.client.node import Talk
from tests.conftest import RunAs, free_port
from tests.fakes.companion_server import FakeCompanion

CARD = "/b/a.md"
OTHER = "/b/o.md"
STATES = ["running", "waiting_for_input", "running", "ready_for_review", "closed"]


def start_with_card(talk: Talk, *cards: str) -> None:
    """A session ``s`` that knows these cards; what it has to say of them is said."""
    talk.ask(do="add", session="s", paths=list(cards or [CARD]))
    talk.ask(do="flush", ms=5000)


def test_a_post_is_what_the_contract_says(publishing: Publishing, companion: FakeCompanion) -> None:
    """Path, harness, session, file when there is one, status; as JSON to /associations."""
    talk = publishing(companion.url + "/")
    talk.ask(do="add", session="s", file="/x/s.jsonl", paths=[CARD])
    talk.ask(do="add", session="t", paths=["/b/ä.md"])
    companion.wait_for(lambda it: len(it.posts) == 2)
    first, second = companion.posts
    assert first.head.startswith("POST /associations HTTP/1.1\r\n")
    assert f"Host: 127.0.0.1:{companion.port}\r\n" in first.head
    assert "Content-Type: application/json\r\n" in first.head
    stat = Path(f"/proc/{talk.pid}/stat")  # Where there is none the number has to do.
    begun = " " + stat.read_text().rpartition(")")[2].split()[19] if stat.exists() else ""
    assert f"Mdello-Process: {talk.pid}{begun}\r\n" in first.head
    assert first.body == {
        "markdownPath": CARD,
        "harness": "pi",
        "sessionId": "s",
        "sessionFile": "/x/s.jsonl",
        "status": "idle",
    }
    assert second.body == {"markdownPath": "/b/ä.md", "harness": "pi", "sessionId": "t", "status": "idle"}


def test_the_companion_is_found_by_name_and_below_a_path(
    publishing: Publishing, companion: FakeCompanion
) -> None:
    """``localhost`` may mean IPv6 first; one slash at the end of the address is no part of it."""
    start_with_card(publishing(f"http://localhost:{companion.port}/board/"))
    assert companion.posts[0].head.startswith("POST /board/associations HTTP/1.1\r\n")
    assert f"Host: localhost:{companion.port}\r\n" in companion.posts[0].head


def test_an_encrypted_companion_must_be_who_it_says(
    publishing: Publishing, companion: FakeCompanion, tmp_path: Path, run: RunAs
) -> None:
    """https works with a certificate that the system trusts, and with no other."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed (it makes a certificate)")
    key, certificate = str(tmp_path / "key.pem"), str(tmp_path / "cert.pem")
    made = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
    ]
    names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", certificate]
    assert run([*made, *names]).returncode == 0
    companion.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    companion.tls.load_cert_chain(certificate, key)
    for number, name in enumerate(["localhost", "127.0.0.1"], 1):
        endpoint = f"https://{name}:{companion.port}"
        start_with_card(publishing(endpoint))
        assert len(companion.posts) == number - 1
        talk = publishing(endpoint, NODE_EXTRA_CA_CERTS=certificate)
        start_with_card(talk)
        assert companion.states(CARD) == ["idle"] * number
        assert talk.end() == (0, "", "")


def test_every_status_arrives_in_order(publishing: Publishing, companion: FakeCompanion) -> None:
    """However fast they follow each other, with a companion that takes its time."""
    companion.slow_s = 0.02
    talk = publishing()
    talk.ask(do="add", session="s", paths=[CARD, OTHER])
    for status in STATES:
        talk.ask(do="set", session="s", status=status)
    for card in (CARD, OTHER):
        companion.wait_for_states(card, ["idle", *STATES])


def test_equal_statuses_and_known_cards_are_not_posted_again(
    publishing: Publishing, companion: FakeCompanion
) -> None:
    """A session says a thing once."""
    talk = publishing()
    for _ in range(3):
        talk.ask(do="add", session="s", paths=[CARD, CARD])
        talk.ask(do="set", session="s", status="running")
    talk.ask(do="flush", ms=5000)
    assert companion.states(CARD) == ["idle", "running"]


def test_a_path_that_was_no_card_is_posted_again_when_named_again(
    publishing: Publishing, companion: FakeCompanion
) -> None:
    """The agent may have made the card since."""
    companion.ignored = lambda path: True
    talk = publishing()
    start_with_card(talk)
    companion.ignored = lambda path: False
    start_with_card(talk)
    start_with_card(talk)
    assert companion.states(CARD) == ["idle", "idle"]


def test_what_can_be_no_card_is_not_posted(publishing: Publishing, companion: FakeCompanion) -> None:
    """Values of any type; the good one among them is."""
    talk = publishing()
    talk.ask(do="add", session="s", paths=[None, 5, "", "rel.md", "/a\0.md", "/" + "x" * 5000, {}, CARD])
    talk.ask(do="flush", ms=5000)
    assert companion.states() == companion.states(CARD) == ["idle"]


def test_a_companion_that_comes_back_gets_the_newest_state(
    publishing: Publishing, companion: FakeCompanion
) -> None:
    """Without any new event, and no state from in between."""
    talk = publishing()
    start_with_card(talk)
    companion.stop()
    for status in STATES[:3]:
        talk.ask(do="set", session="s", status=status)
        talk.ask(do="flush", ms=5000)
    talk.ask(do="add", session="s", paths=[OTHER])
    talk.ask(do="set", session="s", status="ready_for_review")
    talk.ask(do="flush", ms=5000)  # No attempt is under way when it comes back.
    companion.start()
    companion.wait_for_states(CARD, ["idle", "ready_for_review"])
    companion.wait_for_states(OTHER, ["ready_for_review"])


def test_the_next_event_tries_at_once(publishing: Publishing, companion: FakeCompanion) -> None:
    """The pause may have grown long; an event does not wait for its end."""
    talk = publishing()
    start_with_card(talk)
    companion.stop()
    talk.ask(do="set", session="s", status="running")
    talk.ask(do="flush", ms=5000)
    companion.start()
    talk.ask(do="set", session="s", status="running")  # Nothing new, but an event.
    talk.ask(do="flush", ms=5000)
    assert companion.states(CARD) == ["idle", "running"]


def test_a_card_s_state_does_not_wait_for_what_is_no_card(
    publishing: Publishing, companion: FakeCompanion
) -> None:
    """A prompt with a long listing, and an end that follows at once: the one card among them goes first."""
    companion.ignored = lambda path: path != CARD
    talk = publishing()
    start_with_card(talk, *(f"/c/{number}.md" for number in range(150)), CARD)
    companion.slow_s = 0.05
    for status in STATES:
        talk.ask(do="set", session="s", status=status)
    companion.wait_for(lambda it: it.states(CARD)[-1:] == ["closed"])
    before = len(companion.states())
    assert companion.states(CARD) == ["idle", *STATES]
    assert before < 151 + len(STATES) + 20
    companion.slow_s = 0
    companion.wait_for(lambda it: it.states("/c/149.md")[-1:] == ["closed"])
    assert len(companion.states()) < before + 200  # Of what is no card only the newest state is due.


def test_a_card_named_among_too_many_others_is_kept(publishing: Publishing, companion: FakeCompanion) -> None:
    """Those that are no cards make room for it, however late that is known."""
    companion.ignored = lambda path: path != CARD
    companion.status = 500  # Nothing is known yet.
    talk = publishing()
    start_with_card(talk, CARD, *(f"/c/{number}.md" for number in range(1200)))
    talk.ask(do="set", session="s", status="running")
    companion.status = 202
    talk.ask(do="flush", ms=60000)
    companion.wait_for(lambda it: it.states(CARD)[-1:] == ["running"])
    talk.ask(do="add", session="s", paths=[f"/d/{number}.md" for number in range(1200)])
    talk.ask(do="set", session="s", status="closed")
    companion.wait_for(lambda it: it.states(CARD)[-1:] == ["closed"])


def test_an_answer_of_the_server_s_failure_is_tried_again(
    publishing: Publishing, companion: FakeCompanion
) -> None:
    """500, 408 and what is no HTTP; 400 and 403 are final, as is a redirect, which nobody follows."""
    talk = publishing()
    start_with_card(talk)
    for number, status in enumerate((200, 302, 400, 403, 404)):
        companion.status = status
        talk.ask(do="set", session="s", status=STATES[number % 2])
        talk.ask(do="flush", ms=5000)
        companion.status = 202
        talk.ask(do="set", session="s", status=STATES[number % 2])
        talk.ask(do="flush", ms=5000)
    assert len(companion.states(CARD)) == 6
    for status, raw in ((500, None), (503, None), (408, None), (202, b"SSH-2.0-OpenSSH\r\n"), (202, b"")):
        before = len(companion.states(CARD))
        companion.status, companion.raw = status, raw
        talk.ask(do="set", session="s", status=f"s{status}{raw!r}")
        talk.ask(do="flush", ms=5000)
        companion.status, companion.raw = 202, None
        companion.wait_for_number(CARD, before + 2)


def test_a_hanging_companion_delays_nothing(publishing: Publishing, companion: FakeCompanion) -> None:
    """No call waits for it, only the newest state waits, and it is said when the companion is well."""
    talk = publishing(hasty=True)
    start_with_card(talk)
    companion.status = None
    for status in STATES:
        assert talk.ask(do="set", session="s", status=status)["sync"] < 200
    talk.ask(do="many", session="s", count=20000)  # Ends with running.
    took = talk.ask(do="flush", ms=700)["ms"]
    assert took < 5000  # Its own limit, not that of a request of each state.
    talk.ask(do="set", session="s", status="ready_for_review")
    companion.status = 202
    companion.wait_for(lambda it: it.states(CARD)[-1:] == ["ready_for_review"])
    assert len(companion.states(CARD)) < 12


def test_a_state_that_timed_out_is_confirmed(publishing: Publishing, companion: FakeCompanion) -> None:
    """It may still be taken by the companion, behind the newer one: that is said once more."""
    talk = publishing(hasty=True)
    start_with_card(talk)
    companion.status = None
    talk.ask(do="set", session="s", status="running")
    companion.wait_for(lambda it: it.states(CARD) == ["idle", "running"])
    talk.ask(do="set", session="s", status="ready_for_review")
    talk.ask(do="sleep", ms=1100)
    companion.status = 202
    companion.wait_for(lambda it: it.states(CARD)[-2:] == ["ready_for_review"] * 2)
    talk.ask(do="sleep", ms=1500)
    talk.ask(do="flush", ms=5000)
    assert companion.states(CARD).count("ready_for_review") <= 3


def test_an_answer_counts_though_the_connection_stays_open(
    publishing: Publishing, companion: FakeCompanion
) -> None:
    """A companion that keeps connections alive has answered all the same."""
    companion.keep_open = True
    talk = publishing(hasty=True)
    start_with_card(talk)
    talk.ask(do="set", session="s", status="running")
    companion.wait_for_states(CARD, ["idle", "running"])


def test_a_flood_is_shortened_to_the_newest(publishing: Publishing, companion: FakeCompanion) -> None:
    """More than fits into the queue: the last state of each card is said in the end."""
    companion.slow_s = 0.3
    talk = publishing()
    talk.ask(do="add", session="s", paths=[CARD, OTHER])
    talk.ask(do="many", session="s", count=12001)
    talk.ask(do="set", session="s", status="closed")
    companion.slow_s = 0
    companion.wait_for(lambda it: it.states(CARD)[-1:] == it.states(OTHER)[-1:] == ["closed"])
    assert len(companion.states()) < 12000


def test_sessions_and_cards_are_bounded(publishing: Publishing, companion: FakeCompanion) -> None:
    """The oldest go; what they had to say before was said."""
    talk = publishing()
    talk.ask(do="sessions", count=250)
    talk.ask(do="add", session="s", paths=[f"/c/{number}.md" for number in range(1100)])
    talk.ask(do="flush", ms=60000)
    assert len(companion.posts) == 250 + 1100
    talk.ask(do="set", session="s", status="running")
    talk.ask(do="flush", ms=60000)
    assert len(companion.posts) == 250 + 1100 + 1000
    assert companion.states("/c/99.md") == ["idle"]
    assert companion.states("/c/100.md") == ["idle", "running"]


def test_a_forgotten_session_s_last_word_is_said(publishing: Publishing, companion: FakeCompanion) -> None:
    """And the session starts anew when it is named again."""
    companion.slow_s = 0.05
    talk = publishing()
    talk.ask(do="add", session="s", paths=[CARD])
    talk.ask(do="set", session="s", status="closed")
    talk.ask(do="forget", session="s")
    talk.ask(do="add", session="s", paths=[CARD])
    talk.ask(do="flush", ms=5000)
    assert companion.states(CARD) == ["idle", "closed", "idle"]


@pytest.mark.parametrize("trouble", ["refused", "hanging", "garbage", "cut", "no such host", "no url"])
def test_no_trouble_is_seen_or_keeps_the_process(
    publishing: Publishing, companion: FakeCompanion, trouble: str
) -> None:
    """Nothing on the terminal, no exit code, no unhandled rejection; the end of its input ends it."""
    endpoint = {"no such host": "http://nowhere.invalid:1", "no url": "://"}.get(trouble, companion.url)
    companion.status = None if trouble == "hanging" else 202
    companion.raw = {"garbage": b"\0\xff" * 5000, "cut": b"HTTP/1.1 2"}.get(trouble)
    if trouble == "refused":
        companion.stop()
    talk = publishing(endpoint, hasty=True)
    talk.ask(do="add", session="s", paths=[CARD])
    for status in STATES:
        talk.ask(do="set", session="s", status=status)
    talk.ask(do="flush", ms=200)
    talk.ask(do="set", session="s", status="closed")
    ended = talk.end()
    assert (ended.code, ended.stdout, ended.stderr) == (0, "", "")


class _Proxy(http.server.BaseHTTPRequestHandler):
    """Counts whoever comes."""

    seen: List[str] = []

    def do_POST(self) -> None:
        """A request to hand on, which it does not."""
        self.seen.append(self.path)
        self.send_error(502)

    do_CONNECT = do_POST

    def log_message(self, format: str, *args: object) -> None:
        """Silence."""


@pytest.fixture
def proxy() -> Iterator[Dict[str, str]]:
    """Every way to name a proxy that nobody should come to."""
    _Proxy.seen.clear()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Proxy)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    names = ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")
    yield {**dict.fromkeys(names, url), "NODE_USE_ENV_PROXY": "1"}
    server.shutdown()
    server.server_close()


def test_no_proxy_is_asked(publishing: Publishing, companion: FakeCompanion, proxy: Dict[str, str]) -> None:
    """Whatever the environment names."""
    talk = publishing(**proxy)
    start_with_card(talk)
    assert companion.states(CARD) == ["idle"]
    assert not _Proxy.seen


def test_a_flush_ends_at_once_when_nobody_is_there(publishing: Publishing) -> None:
    """A missing companion costs the agent's end nothing like the limit."""
    talk = publishing(f"http://127.0.0.1:{free_port()}")
    talk.ask(do="add", session="s", paths=[CARD])
    answer: Dict[str, Any] = talk.ask(do="flush", ms=60000)
    assert answer["ms"] < 30000
