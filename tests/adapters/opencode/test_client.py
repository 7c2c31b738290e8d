"""The OpenCode client in node, with a small host in OpenCode's place: what the companion hears."""

import json
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional

import pytest

from adapters.client.bundle import client_source
from tests.adapters.client.node import Talk, node_program, patient
from tests.conftest import ROOT
from tests.fakes.companion_server import FakeCompanion

HOST = ROOT / "tests" / "fakes" / "opencode_host.mjs"
SEQUENCES = ROOT / "tests" / "fixtures" / "opencode" / "events"
PROJECT = "/home/dev/project"
CARD = "/home/dev/board/card.md"
OTHER = "/home/dev/board/other.md"
DOUBT_MS = 10_000
"""After so long without a sign of work, OpenCode is asked."""

Json = Dict[str, Any]


class OpenCode:
    """The host. What goes in is checked for what no plugin may do: throw, answer, wait, change."""

    def __init__(self, talk: Talk, companion: FakeCompanion) -> None:
        self.talk = talk
        self.companion = companion
        self.folder = PROJECT

    def open(self, folder: str = PROJECT) -> Json:
        """The plugin is called for a folder; what follows goes there."""
        self.folder = folder
        told: Json = self.talk.ask(open=folder)
        return told

    def know(self, **known: object) -> None:
        """What the plugin is answered when it asks."""
        self.talk.ask(know=known)

    def act(self, **act: object) -> None:
        """One event or hook call."""
        told = self.talk.ask(**{"in": self.folder, **act})
        assert "threw" not in told and told["returned"] is None and not told["changed"], (act, told)

    def event(self, type_: str, session: str = "s1", **properties: object) -> None:
        """One event of a session."""
        self.act(event={"id": "e", "type": type_, "properties": {"sessionID": session, **properties}})

    def prompt(self, text: str, session: str = "s1", *parts: Json) -> None:
        """A prompt of the user, with more parts than its text."""
        texts = [{"type": "text", "text": text}, *parts]
        self.act(hook="chat.message", given=[{"sessionID": session}, {"message": {}, "parts": texts}])

    def tool(self, name: str, session: str = "s1", metadata: Optional[Json] = None, **args: object) -> None:
        """A call that succeeded."""
        given = {"tool": name, "sessionID": session, "callID": "c1"}
        self.act(hook="tool.execute.before", given=[given, {"args": args}])
        self.act(
            hook="tool.execute.after", given=[{**given, "args": args}, {"output": "", "metadata": metadata}]
        )

    def created(self, session: str = "s1", parent: Optional[str] = None) -> None:
        """A session begins."""
        self.event(
            "session.created", session, info={"id": session, **({"parentID": parent} if parent else {})}
        )

    def dispose(self) -> None:
        """OpenCode is done with the folder."""
        self.act(dispose=True)

    def settle(self) -> List[Json]:
        """Wait until all is posted; what the plugin asked since the last time."""
        asked: List[Json] = self.talk.ask(settle=True)["asked"]
        return asked

    def later(self, ms: int = 3 * DOUBT_MS) -> None:
        """So much later, by the clock of the plugin's long waits."""
        self.talk.ask(later=ms)

    def heard(self, path: str = CARD) -> List[str]:
        """All statuses of a card so far."""
        self.settle()
        return self.companion.states(path)

    def sessions(self) -> Dict[str, List[str]]:
        """The cards of each session, in the order of their first posts."""
        self.settle()
        found: Dict[str, List[str]] = {}
        for post in self.companion.posts:
            cards = found.setdefault(str(post.body["sessionId"]), [])
            path = str(post.body["markdownPath"])
            cards += [] if path in cards else [path]
        return found


MakeOpenCode = Callable[..., OpenCode]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The client as it is installed."""
    file = tmp_path_factory.mktemp("client") / "client.mjs"
    file.write_bytes(client_source("opencode"))
    file.with_name("patient.mjs").write_bytes(patient(client_source("opencode")))
    return file


@pytest.fixture
def make_opencode(client: Path, companion: FakeCompanion) -> Iterator[MakeOpenCode]:
    """Starts a host whose plugin reports to the fake companion, or to the endpoint given; a hasty one
    waits for an answer as long as it really does."""
    talks: List[Talk] = []

    def make(endpoint: str = "", hasty: bool = False) -> OpenCode:
        module = client if hasty else client.with_name("patient.mjs")
        environ = {"MDELLO_COMPANION_URL": endpoint or companion.url}
        talks.append(Talk([node_program(), str(HOST), str(module)], environ))
        return OpenCode(talks[-1], companion)

    yield make
    for talk in talks:
        talk.__exit__()


@pytest.fixture
def opencode(make_opencode: MakeOpenCode) -> OpenCode:
    """A host with one folder open."""
    made = make_opencode()
    made.open()
    return made


def message(role: str, *parts: Json, cwd: str = "") -> Json:
    """An entry of a session's history."""
    info: Json = {"id": "m", "role": role}
    return {"info": {**info, "path": {"cwd": cwd}} if cwd else info, "parts": list(parts)}


def text(value: str, **more: object) -> Json:
    """A text part."""
    return {"type": "text", "text": value, **more}


def call(tool: str, status: str = "completed", metadata: Optional[Json] = None, **given: object) -> Json:
    """A tool part."""
    state = {"status": status, "input": given, "metadata": metadata or {}}
    return {"type": "tool", "tool": tool, "callID": "c", "state": state}


# --- what it is -----------------------------------------------------------------------------------


def test_one_function_is_exported_and_it_only_listens(make_opencode: MakeOpenCode) -> None:
    """OpenCode would call every other function as a plugin, too."""
    told = make_opencode().open()
    hooks = {"event", "chat.message", "tool.execute.before", "tool.execute.after", "dispose"}
    assert told == {"plugins": 1, "hooks": sorted(hooks, key=told["hooks"].index)}


@pytest.mark.parametrize("name", sorted(file.stem for file in SEQUENCES.glob("*.jsonl")))
def test_the_status_after_every_event(opencode: OpenCode, name: str) -> None:
    """Sequences as the real program has them; the first line of a file says of what."""
    lines = [json.loads(line) for line in (SEQUENCES / f"{name}.jsonl").read_text("utf-8").splitlines()]
    assert set(lines.pop(0)) == {"note"}
    for number, line in enumerate(lines, 2):
        status = line.pop("status")
        opencode.act(**line)
        heard: List[Optional[str]] = [None, *opencode.heard()]
        assert heard[-1] == status, f"{name}.jsonl:{number}: {heard}"
    assert set(opencode.sessions()) == {"ses_main"}
    for first, second in zip(heard, heard[1:]):
        assert first != second, "a status was told twice"


# --- which cards ----------------------------------------------------------------------------------


def test_cards_of_prompts_and_edits(opencode: OpenCode) -> None:
    """Quoted prompts, relative paths, attached files, patches; not reads, nor what is synthetic."""
    opencode.created()
    file = {"type": "file", "mime": "text/plain", "url": "file:///home/dev/board/at%20tached.md?start=1"}
    odd = [
        {"type": "file", "url": "file:///%E0%A4%A.md"},
        {"type": "file", "url": "data:text/plain;base64,eA=="},
    ]
    opencode.prompt(
        '"see /b/a.md"', "s1", text("/b/synthetic.md", synthetic=True), file, *odd, {"type": "file"}
    )
    opencode.tool("edit", filePath="../board/x.md")
    opencode.tool("write", filePath="/b/y.md")
    opencode.tool("write", filePath="notes.txt")
    opencode.tool("read", filePath="/b/read.md")
    opencode.tool("invalid", tool="edit", filePath="/b/invalid.md")
    files = [
        {"filePath": "/b/p1.md", "type": "update"},
        {"filePath": "/b/p2.md", "type": "move", "movePath": "/b/p3.md"},
        {"filePath": "/b/p4.md", "type": "delete"},
        None,
    ]
    opencode.tool("apply_patch", metadata={"files": files}, patchText="...")
    opencode.tool("apply_patch", metadata={"files": "none"})
    cards = [
        "/b/a.md",
        "/home/dev/board/at tached.md",
        "/home/dev/board/x.md",
        "/b/y.md",
        "/b/p1.md",
        "/b/p3.md",
    ]
    assert opencode.sessions() == {"s1": cards}
    opencode.prompt("again /b/a.md and /b/y.md")
    assert opencode.heard("/b/a.md") == opencode.heard("/b/y.md") == ["running"]


def test_a_resumed_session_has_its_history(opencode: OpenCode) -> None:
    """The user's texts first, then what was changed for sure; asked for once, whatever comes."""
    table = json.loads((ROOT / "tests/fixtures/opencode/messages.json").read_text(encoding="utf-8"))
    assert table["directory"] == PROJECT
    history = [*table["messages"], {"info": None, "parts": None}, {"parts": [None, "x", {"type": "tool"}]}]
    opencode.know(sessions={"s1": {"messages": history}})
    opencode.prompt("go on with /b/0.md")
    asked = opencode.settle()
    cards = [*table["named"], *table["edited"]]
    assert opencode.sessions() == {"s1": ["/b/0.md", *cards]}
    assert [one["what"] for one in asked] == ["get", "messages", "children"]
    opencode.event("session.status", status={"type": "busy"})
    opencode.event("session.idle")
    assert opencode.settle() == []
    assert {card: opencode.heard(card) for card in cards} == {
        card: ["running", "ready_for_review"] for card in cards
    }


@pytest.mark.parametrize("pages", [True, False])
def test_a_long_history_is_read_in_parts_where_that_is_possible(opencode: OpenCode, pages: bool) -> None:
    """Versions that do not page keep the newest only when asked for a number."""
    history = [message("user", text(f"see /b/{number}.md")) for number in range(350)]
    opencode.know(sessions={"s1": {"messages": history}}, pages=pages)
    opencode.prompt("go on")
    asked = [one["what"] for one in opencode.settle()]
    assert asked.count("messages") == (4 if pages else 2)
    assert len(opencode.sessions()["s1"]) == 350


def test_a_fork_is_read_with_its_first_prompt(opencode: OpenCode) -> None:
    """Its messages are copied after it was made; a new session's children are all yet to come."""
    opencode.created()
    assert opencode.settle() == []
    opencode.know(sessions={"s1": {"messages": [message("user", text(f"see {CARD}"))]}})
    opencode.prompt("go on")
    assert [one["what"] for one in opencode.settle()] == ["messages"]
    assert opencode.heard() == ["running"]


# --- families -------------------------------------------------------------------------------------


def test_a_child_from_before_is_asked_for_its_parent(opencode: OpenCode) -> None:
    """Nothing is told until its root is known, nor is anything lost; its parent's other cards come along."""
    opencode.know(
        sessions={
            "root": {"messages": [message("user", text(f"see {OTHER}"))], "children": [{"id": "child"}]},
            "child": {"parentID": "root", "children": [{"id": "grandchild"}]},
            "grandchild": {"parentID": "child", "messages": [message("user", text("see /b/old.md"))]},
        }
    )
    opencode.prompt(f"see {CARD}", "grandchild")
    opencode.event("permission.asked", "grandchild", id="p1")
    assert {key: set(cards) for key, cards in opencode.sessions().items()} == {"root": {CARD, "/b/old.md"}}
    assert opencode.heard()[-1] == "waiting_for_input"
    opencode.event("permission.replied", "grandchild", requestID="p1")
    opencode.event("session.idle", "grandchild")
    assert opencode.heard()[-1] == "ready_for_review"
    opencode.prompt("go on", "root")
    assert set(opencode.sessions()["root"]) == {CARD, OTHER, "/b/old.md"}
    opencode.event("session.idle", "root")
    assert opencode.heard(OTHER) == ["running", "ready_for_review"]


def test_the_cards_of_sub_agents_from_before_come_back_with_their_parent(opencode: OpenCode) -> None:
    """Also when only the parent goes on, and those of theirs; read one after the other."""
    wrote = [message("assistant", call("write", filePath=path)) for path in (CARD, OTHER)]
    opencode.know(
        sessions={
            "root": {"children": [{"id": "child"}, {"id": None}, {}, {"id": "second"}]},
            "child": {"messages": wrote[:1], "children": [{"id": "grandchild"}]},
            "grandchild": {"messages": wrote[1:]},
        }
    )
    opencode.prompt("go on", "root")
    opencode.event("session.idle", "root")
    read = [one["path"]["id"] for one in opencode.settle() if one["what"] in ("messages", "children")]
    assert read == [one for one in ("root", "child", "grandchild", "second") for _ in range(2)]
    for card in (CARD, OTHER):
        assert opencode.heard(card)[-1] == "ready_for_review"
    assert set(opencode.sessions()) == {"root"}


@pytest.mark.parametrize(
    ("mood", "heard"), [("fails", ["running", "ready_for_review"]), ("hangs", ["ready_for_review"])]
)
def test_without_answers_a_session_is_its_own(opencode: OpenCode, mood: str, heard: List[str]) -> None:
    """Neither its parent nor its history can be had; of what happens meanwhile, the last state counts."""
    opencode.know(mood=mood)
    opencode.prompt(f"see {CARD}")
    opencode.event("session.idle")
    opencode.later()
    assert opencode.heard() == heard
    assert set(opencode.sessions()) == {"s1"}


def test_a_deleted_sub_agent_holds_nobody_up(opencode: OpenCode) -> None:
    """What it asked is not needed any more, and what it did is over; of a deleted root nothing is told."""
    opencode.created("root")
    opencode.prompt(f"see {CARD}", "root")
    for child in ("one", "two"):
        opencode.created(child, "root")
        opencode.prompt("go", child)
        opencode.event("permission.asked", child, id=f"of {child}")
    opencode.event("session.deleted", "one")
    assert opencode.heard() == ["running", "waiting_for_input"]
    opencode.event("session.deleted", "two")
    assert opencode.heard() == ["running", "waiting_for_input", "running"]
    opencode.created("three", "root")
    opencode.event("session.deleted", "root")
    opencode.prompt(f"see {OTHER}", "three")
    opencode.event("session.error", "three", error={})
    assert opencode.heard()[3:] == ["closed"]
    assert opencode.heard(OTHER) == []


@pytest.mark.parametrize("parents", [{"s1": "s1"}, {"s1": "s2", "s2": "s1"}])
def test_a_family_without_a_root_says_nothing(opencode: OpenCode, parents: Dict[str, str]) -> None:
    """Nonsense from outside does no harm to others."""
    opencode.know(sessions={session: {"parentID": parent} for session, parent in parents.items()})
    opencode.prompt("see /b/lost.md")
    opencode.created("s9")
    opencode.prompt(f"see {CARD}", "s9")
    assert opencode.heard() == ["running"]


# --- folders --------------------------------------------------------------------------------------


def test_disposing_of_a_folder_closes_its_sessions_only(opencode: OpenCode) -> None:
    """Both folders share one module; a closed session that comes back is read anew."""
    opencode.created()
    opencode.prompt(f"see {CARD}")
    opencode.open("/home/dev/elsewhere")
    opencode.created("s2")
    opencode.prompt(f"see {OTHER}", "s2")
    opencode.dispose()
    assert opencode.companion.states(OTHER) == ["running", "closed"]  # Posted when dispose is over.
    opencode.event("session.idle", "s2")
    opencode.prompt("see /b/late.md", "s2")
    assert opencode.heard() == ["running"]
    opencode.know(sessions={"s2": {"messages": [message("user", text(f"see {OTHER}"))]}})
    opencode.open("/home/dev/elsewhere")
    opencode.prompt("go on", "s2")
    assert opencode.heard(OTHER) == ["running", "closed", "running"]
    opencode.event("server.instance.disposed", "", directory=PROJECT)
    opencode.folder = PROJECT
    opencode.event("server.instance.disposed", "", directory=PROJECT)
    assert opencode.heard() == ["running", "closed"]
    assert opencode.heard(OTHER)[-1] == "running"
    assert opencode.heard("/b/late.md") == []


def test_a_session_whose_root_is_still_sought_is_not_opened_by_the_end(opencode: OpenCode) -> None:
    """What was held back is dropped with the folder."""
    opencode.know(mood="hangs")
    opencode.prompt(f"see {CARD}")
    opencode.dispose()
    opencode.later()
    assert opencode.heard() == []


def test_a_disposed_folder_is_not_asked_any_more(opencode: OpenCode) -> None:
    """It would be opened again for the answer."""
    opencode.know(mood="slowly", sessions={"s1": {"parentID": "root"}})
    opencode.prompt(f"see {CARD}")
    opencode.dispose()
    opencode.later()
    assert [one["what"] for one in opencode.settle()] == ["get", "messages"]
    assert opencode.heard() == []


def test_a_root_is_kept_as_long_as_its_family(opencode: OpenCode) -> None:
    """Its sub-agents' work is its own."""
    opencode.created("root")
    opencode.created("child", "root")
    for number in range(1200):
        opencode.created(f"n{number}")
        if number % 300 == 0:
            opencode.prompt("go on", "child")
    opencode.settle()
    opencode.prompt(f"see {CARD}", "root")
    assert "get" not in [one["what"] for one in opencode.settle()]


def test_a_sub_agent_that_is_let_go_holds_its_parent_up_no_longer(opencode: OpenCode) -> None:
    """However many a session sends, those unused for longest are not kept with it either."""
    opencode.created("root")
    opencode.prompt(f"see {CARD}", "root")
    opencode.created("child", "root")
    opencode.prompt("go", "child")
    opencode.event("session.idle", "root")
    assert opencode.heard() == ["running"]
    for number in range(600):
        opencode.created(f"n{number}", "root")
    assert opencode.heard() == ["running", "ready_for_review"]


def test_many_sessions_are_not_kept_for_ever(opencode: OpenCode) -> None:
    """The one unused for longest is read anew when it comes back."""
    opencode.created()
    opencode.prompt(f"see {CARD}")
    for number in range(600):
        opencode.created(f"n{number}")
    opencode.know(sessions={"s1": {"messages": [message("user", text(f"see {OTHER}"))]}})
    opencode.prompt("go on")
    assert opencode.heard(OTHER) == ["running"]


# --- a prompt that wants no answer ----------------------------------------------------------------


def test_a_note_leaves_the_session_as_it_was(opencode: OpenCode) -> None:
    """noReply: the prompt's hook is called, and no work follows; after a while OpenCode is asked."""
    opencode.created()
    opencode.prompt(f"see {CARD}")
    opencode.later()
    assert opencode.heard() == ["running", "idle"]
    opencode.prompt("work")
    opencode.event("session.status", status={"type": "busy"})
    opencode.later()
    assert opencode.heard() == ["running", "idle", "running"]
    opencode.event("session.idle")
    opencode.prompt("note")
    opencode.later()
    assert opencode.heard() == ["running", "idle", *["running", "ready_for_review"] * 2]


def test_an_idle_session_that_is_stopped_is_no_news_but_an_error_is(opencode: OpenCode) -> None:
    """The person has looked at it already; of an error nobody has heard."""
    opencode.created()
    opencode.prompt(f"see {CARD}")
    opencode.later()
    opencode.event("session.idle")
    assert opencode.heard() == ["running", "idle"]
    opencode.created("child", "s1")
    opencode.event("session.error", "child", error={"name": "UnknownError"})  # That is for its parent to say.
    assert opencode.heard() == ["running", "idle"]
    opencode.event("session.error", error={"name": "UnknownError"})
    assert opencode.heard() == ["running", "idle", "ready_for_review"]


def test_a_question_ends_with_its_call_when_nothing_else_is_told(opencode: OpenCode) -> None:
    """As in versions that have no events for it."""
    opencode.created()
    opencode.prompt(f"see {CARD}")
    opencode.tool("question")
    asked = ["waiting_for_input", "running"]
    assert opencode.heard() == ["running", *asked]
    opencode.act(
        hook="tool.execute.before", given=[{"tool": "question", "sessionID": "s1", "callID": "c2"}, {}]
    )
    part = {"type": "tool", "tool": "question", "callID": "c2", "state": {"status": "completed"}}
    opencode.event("message.part.updated", part=part)
    assert opencode.heard() == ["running", *asked, *asked]


def test_work_that_begins_while_opencode_is_asked_is_work(opencode: OpenCode) -> None:
    """Its answer was true when it was given."""
    opencode.created()
    opencode.prompt(f"see {CARD}")
    opencode.settle()
    opencode.know(mood="waits")
    opencode.later(DOUBT_MS)
    opencode.event("session.status", status={"type": "busy"})
    opencode.know(mood="answers")
    opencode.later()
    assert opencode.heard() == ["running"]
    opencode.event("session.idle")
    assert opencode.heard() == ["running", "ready_for_review"]


@pytest.mark.parametrize("kind", ["busy", "retry"])
def test_every_sign_of_work_counts_alone(opencode: OpenCode, kind: str) -> None:
    """Whichever comes first when a session goes on."""
    opencode.created()
    opencode.prompt(f"see {CARD}")
    opencode.event("session.idle")
    opencode.event("session.status", status={"type": kind})
    assert opencode.heard() == ["running", "ready_for_review", "running"]


def test_parts_of_older_versions_name_the_session_themselves(opencode: OpenCode) -> None:
    """Their events do not."""
    opencode.created()
    opencode.prompt(f"see {CARD}")
    opencode.event("session.idle")
    part = {"type": "step-start", "sessionID": "s1"}
    opencode.act(event={"type": "message.part.updated", "properties": {"part": part}})
    assert opencode.heard() == ["running", "ready_for_review", "running"]


def test_a_cold_start_is_no_note(opencode: OpenCode) -> None:
    """The first sign of work can be slow; OpenCode knows that the session is busy."""
    opencode.know(sessions={"s1": {"busy": True}})
    opencode.prompt(f"see {CARD}")
    opencode.later()
    assert opencode.heard() == ["running"]


# --- the companion --------------------------------------------------------------------------------


def test_a_companion_that_hangs_delays_nothing_but_the_end(
    make_opencode: MakeOpenCode, companion: FakeCompanion
) -> None:
    """Hooks return at once and dispose within its bound; what did not get through is told later."""
    opencode = make_opencode(hasty=True)
    opencode.open()
    companion.status = None
    opencode.created()
    for number in range(20):
        opencode.prompt(f"see /b/{number}.md")
    waited = [opencode.talk.ask(event={"type": "session.idle", "properties": {"sessionID": "s1"}})["ms"]]
    waited += [opencode.talk.ask(hook="tool.execute.before", given=[{"sessionID": "s1"}, {}])["ms"]]
    assert max(waited) < 500
    assert opencode.talk.ask(dispose=True)["ms"] < 3500
    companion.status = 202
    companion.wait_for(lambda it: it.states("/b/19.md")[-1:] == ["closed"], "newest state")


def test_no_timer_of_ours_holds_the_process(opencode: OpenCode, companion: FakeCompanion) -> None:
    """While answers are awaited, of OpenCode and of the companion, and posts are to be repeated."""
    companion.stop()
    opencode.know(mood="hangs")
    opencode.created()
    opencode.prompt(f"see {CARD}")
    opencode.prompt(f"see {CARD}", "s2")
    assert opencode.talk.ask(settle=True)["timers"] == 0


def test_nothing_is_printed_and_nothing_is_held_open(
    make_opencode: MakeOpenCode, companion: FakeCompanion
) -> None:
    """Without a companion, with doubts and retries pending, the process ends by itself, and silently."""
    companion.stop()
    opencode = make_opencode()
    opencode.open()
    opencode.prompt(f"see {CARD}")
    opencode.event("session.error", error={"name": "X"})
    opencode.prompt("go on")
    ended = opencode.talk.end()
    assert (ended.code, ended.stdout, ended.stderr) == (0, "", "")


@pytest.mark.parametrize("endpoint", ["nonsense://", "http://", "http://127.0.0.1:1"])
def test_a_wrong_endpoint_is_no_trouble(make_opencode: MakeOpenCode, endpoint: str) -> None:
    """Whatever the variable says."""
    opencode = make_opencode(endpoint)
    opencode.open()
    opencode.prompt(f"see {CARD}")
    opencode.dispose()


def test_a_card_of_no_board_is_offered_again_when_named_again(
    opencode: OpenCode, companion: FakeCompanion
) -> None:
    """It may have become one."""
    companion.ignored = lambda path: path == CARD
    opencode.created()
    opencode.prompt(f"see {CARD} and {OTHER}")
    assert opencode.heard() == ["running"]
    companion.ignored = lambda path: False
    opencode.prompt(f"see {CARD} and {OTHER}")
    assert opencode.heard() == ["running", "running"]
    assert opencode.heard(OTHER) == ["running"]
