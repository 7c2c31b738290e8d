"""The Pi client in node, with a small host in Pi's place: event by event, what the companion hears."""

import json
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional

import pytest

from adapters.client.bundle import client_source
from tests.adapters.client.node import Talk, node_program, patient
from tests.conftest import ROOT
from tests.fakes.companion_server import FakeCompanion

HOST = ROOT / "tests" / "fakes" / "pi_host.mjs"
CARD = "/b/a.md"
OTHER = "/b/o.md"

Json = Dict[str, Any]


class Pi:
    """The host, one session at a time. Events go out with the context of the moment."""

    def __init__(self, talk: Talk) -> None:
        self.talk = talk
        self.context: Json = {"id": "s1", "file": "/x/s1.jsonl", "cwd": "/w", "idle": True, "branch": []}
        self.talk.ask(load=True)

    def send(self, event_type: str, **event: object) -> List[Json]:
        """One event; no handler may throw or answer anything."""
        answers: List[Json] = self.talk.ask(event={"type": event_type, **event}, ctx=self.context)
        for answer in answers:
            assert answer.get("returned", "threw") is None, answer
        return answers

    def start(self, reason: str = "startup", **context: object) -> None:
        """``session_start`` of a session."""
        self.context.update(context)
        self.send("session_start", reason=reason)

    def run(self, prompt: str = f"see {CARD}", settle: bool = True) -> None:
        """A whole run of Pi 1.x, or without its last event."""
        self.send("input", text=prompt, source="interactive")
        self.busy()
        self.send("agent_end", messages=[])
        if settle:
            self.idle()

    def busy(self) -> None:
        """The agent starts."""
        self.context["idle"] = False
        self.send("agent_start")

    def idle(self, aborted: bool = False) -> None:
        """The agent has settled."""
        self.context["idle"] = True
        self.send("agent_settled", aborted=aborted)

    def quit(self, reason: Optional[str] = "quit") -> List[Json]:
        """``session_shutdown``, with which the posts are out."""
        return self.send("session_shutdown", **({"reason": reason} if reason else {}))


MakePi = Callable[..., Pi]


@pytest.fixture(scope="session")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The client as it is installed."""
    file = tmp_path_factory.mktemp("client") / "client.mjs"
    file.write_bytes(client_source("pi"))
    file.with_name("patient.mjs").write_bytes(patient(client_source("pi")))
    return file


@pytest.fixture
def make_pi(companion: FakeCompanion, client: Path) -> Iterator[MakePi]:
    """Starts hosts with the client loaded; a hasty one waits for an answer as long as it really does."""
    talks: List[Talk] = []

    def start(hasty: bool = False) -> Pi:
        module = client if hasty else client.with_name("patient.mjs")
        environ = {"HOME": "/home/dev", "MDELLO_COMPANION_URL": companion.url}
        talks.append(Talk([node_program(), str(HOST), str(module)], environ))
        return Pi(talks[-1])

    yield start
    for talk in talks:
        talk.__exit__()


@pytest.fixture
def pi(make_pi: MakePi) -> Pi:
    """A host with a session that has started."""
    host = make_pi()
    host.start()
    return host


def message(role: str, content: object, **more: object) -> Json:
    """An entry of a session."""
    return {"type": "message", "message": {"role": role, "content": content, **more}}


def call(call_id: str, tool: str, path: object) -> Json:
    """An assistant's entry with a tool call."""
    return message(
        "assistant", [{"type": "toolCall", "id": call_id, "name": tool, "arguments": {"path": path}}]
    )


def result(call_id: str, tool: str, **more: object) -> Json:
    """The entry with its result."""
    return message(
        "toolResult", [{"type": "text", "text": "done"}], toolCallId=call_id, toolName=tool, **more
    )


# --- a run -----------------------------------------------------------------------------------------


def test_a_session_from_start_to_end(pi: Pi, companion: FakeCompanion) -> None:
    """Named while idle, worked on, settled, closed; and every post says whose it is."""
    pi.run()
    pi.quit()
    assert companion.states(CARD) == ["idle", "running", "ready_for_review", "closed"]
    for post in companion.posts:
        assert post.body["harness"] == "pi"
        assert (post.body["sessionId"], post.body["sessionFile"]) == ("s1", "/x/s1.jsonl")


def test_every_status_change_goes_to_every_card(pi: Pi, companion: FakeCompanion) -> None:
    """A card found in the middle joins in with the status of the moment."""
    pi.send("input", text=f"see {CARD}", source="interactive")
    pi.busy()
    pi.send("tool_result", toolName="write", input={"path": OTHER}, isError=False)
    pi.idle()
    pi.quit()
    assert companion.states(CARD) == ["idle", "running", "ready_for_review", "closed"]
    assert companion.states(OTHER) == ["running", "ready_for_review", "closed"]


@pytest.mark.parametrize(
    ("tool", "path", "card"),
    [
        ("write", "/b/c.md", "/b/c.md"),
        ("edit", "/b/UP.MD", "/b/UP.MD"),
        ("edit", "sub/../c.md", "/w/c.md"),
        ("write", "@c.md", "/w/c.md"),
        ("write", "@/b/c.md", "/b/c.md"),
        ("edit", "~/b/c.md", "/home/dev/b/c.md"),
        ("edit", "@~/b/c.md", "/home/dev/b/c.md"),
        ("write", "/b/my\u00a0own\u202fc\u3000d.md", "/b/my own c d.md"),
        ("write", "file:///b/my%20c.md", "/b/my c.md"),
        ("write", "file://elsewhere/b/c.md", None),
        ("write", "file:///b/%E0%A4%A.md", None),
        ("read", "/b/c.md", None),
        ("bash", "/b/c.md", None),
        ("Write", "/b/c.md", None),
        ("write", "/b/c.txt", None),
        ("write", ["/b/c.md"], None),
        ("write", None, None),
        ("write", 5, None),
    ],
)
def test_successful_edits_and_writes_count(
    pi: Pi, companion: FakeCompanion, tool: str, path: object, card: Optional[str]
) -> None:
    """With the path as Pi itself reads it; nothing else does, and a failure never."""
    pi.send("tool_result", toolName=tool, input={"path": path}, isError=True)
    pi.send("tool_result", toolName=tool, isError=False)
    pi.send("input", text="/b/mark.md")  # Behind what the failures would have posted.
    pi.send("tool_result", toolName=tool, input={"path": path}, isError=False)
    pi.send("tool_result", toolName=tool, input={"path": path}, isError=False)
    pi.quit()
    posted = [post.body["markdownPath"] for post in companion.posts if post.body["status"] == "idle"]
    assert posted == ["/b/mark.md", *([card] if card else [])]


def test_ui_prompts_wait(pi: Pi, companion: FakeCompanion) -> None:
    """In a run it goes on afterwards; from a command the agent is idle again."""
    pi.send("input", text=CARD, source="interactive")
    pi.busy()
    pi.send("ui_prompt_start", reason="ui_prompt", kind="select", title="Pick")
    pi.send("ui_prompt_end", reason="ui_prompt", kind="select", title="Pick")
    pi.idle()
    pi.send("ui_prompt_start", reason="ui_prompt", kind="confirm")
    pi.send("ui_prompt_end", reason="ui_prompt", kind="confirm")
    pi.quit()
    waiting = ["waiting_for_input", "running", "ready_for_review", "waiting_for_input", "idle", "closed"]
    assert companion.states(CARD) == ["idle", "running", *waiting]


def test_a_run_that_settles_behind_a_dialog_is_to_be_looked_at_when_that_ends(
    pi: Pi, companion: FakeCompanion
) -> None:
    """A command may ask something while the agent works: that waits for the answer, whatever ends."""
    pi.run()
    for ending in ("settled", "goes on"):
        pi.busy()
        pi.send("ui_prompt_start", reason="ui_prompt", kind="select")
        pi.send("agent_end", messages=[])
        pi.idle()
        if ending == "goes on":
            pi.context["idle"] = False
        pi.send("ui_prompt_end", reason="ui_prompt", kind="select")
    pi.idle()
    pi.send("ui_prompt_start", reason="ui_prompt", kind="select")
    pi.send("ui_prompt_end", reason="ui_prompt", kind="select")
    pi.quit()
    first = ["running", "waiting_for_input", "ready_for_review"]
    second = ["running", "waiting_for_input", "running", "ready_for_review"]
    assert companion.states(CARD)[3:] == [*first, *second, "waiting_for_input", "idle", "closed"]


def test_an_aborted_run_is_settled_too(pi: Pi, companion: FakeCompanion) -> None:
    """The person wants to look at it all the same."""
    pi.send("input", text=CARD, source="interactive")
    pi.busy()
    pi.send("agent_end", messages=[{"role": "assistant", "stopReason": "aborted"}])
    pi.idle(aborted=True)
    pi.quit()
    assert companion.states(CARD) == ["idle", "running", "ready_for_review", "closed"]


def test_a_run_that_goes_on_after_its_end_is_running(pi: Pi, companion: FakeCompanion) -> None:
    """A retry: agent_end is no end while Pi is not idle, however long that takes."""
    pi.send("input", text=CARD, source="interactive")
    pi.busy()
    pi.send("agent_end", messages=[])
    pi.talk.ask(sleep=400)
    pi.busy()
    pi.send("agent_end", messages=[])
    pi.idle()
    pi.quit()
    assert companion.states(CARD) == ["idle", "running", "ready_for_review", "closed"]


def test_settling_behind_the_next_start_changes_nothing(pi: Pi, companion: FakeCompanion) -> None:
    """Another extension may start a run when one settles: then it is running."""
    pi.run()
    pi.busy()
    pi.send("agent_settled", aborted=False)
    pi.talk.ask(sleep=50)
    pi.quit()
    assert companion.states(CARD) == ["idle", "running", "ready_for_review", "running", "closed"]


# --- prompts that may be refused ---------------------------------------------------------------------


def test_a_refused_prompt_names_no_cards(pi: Pi, companion: FakeCompanion) -> None:
    """Sent while Pi is busy, without saying how it is to be queued."""
    pi.run()
    pi.busy()
    pi.send("input", text=f"and {OTHER}", source="rpc")
    pi.send("message_start", message={"role": "user", "content": "something else"})
    pi.idle()
    pi.quit()
    assert companion.states(OTHER) == []


def test_a_queued_prompt_names_its_cards_at_once(pi: Pi, companion: FakeCompanion) -> None:
    """Steering and follow-ups are accepted when they are sent."""
    pi.busy()
    pi.send("input", text=CARD, source="rpc", streamingBehavior="steer")
    pi.send("input", text=OTHER, source="interactive", streamingBehavior="followUp")
    pi.quit()
    assert companion.states(CARD) == companion.states(OTHER) == ["running", "closed"]


def test_an_older_pi_queues_without_saying_so(pi: Pi, companion: FakeCompanion) -> None:
    """Then the cards count when the message arrives, expanded templates included."""
    pi.busy()
    pi.send("input", text=f"/look {CARD}", source="interactive")
    pi.send("message_start", message={"role": "assistant", "content": [{"type": "text", "text": CARD}]})
    pi.send("ui_prompt_start", reason="ui_prompt", kind="select")  # A card that was known would hear of it.
    pi.send("ui_prompt_end", reason="ui_prompt", kind="select")
    pi.send(
        "message_start",
        message={"role": "user", "content": [{"type": "text", "text": f"Look at {CARD} well"}]},
    )
    pi.quit()
    assert companion.states(CARD) == ["running", "closed"]


# --- an older Pi, which has no agent_settled -----------------------------------------------------------


def test_without_agent_settled_the_end_of_the_run_counts(pi: Pi, companion: FakeCompanion) -> None:
    """Once, a moment later, when nothing has started meanwhile."""
    pi.run(settle=False)
    pi.context["idle"] = True
    pi.send("agent_end", messages=[{"role": "assistant", "stopReason": "stop"}])
    companion.wait_for_states(CARD, ["idle", "running", "ready_for_review"])
    pi.quit(reason=None)
    assert companion.states(CARD)[3:] == ["closed"]


def test_without_agent_settled_queued_work_goes_on(pi: Pi, companion: FakeCompanion) -> None:
    """A run that follows at once is the same work."""
    pi.send("input", text=CARD, source="interactive")
    for _ in range(3):
        pi.busy()
        pi.context["idle"] = True
        pi.send("agent_end", messages=[])
    companion.wait_for_states(CARD, ["idle", "running", "ready_for_review"])


def test_without_agent_settled_a_failed_request_may_be_tried_again(pi: Pi, companion: FakeCompanion) -> None:
    """Pi waits for some seconds before; but the end of the session decides."""
    pi.send("input", text=CARD, source="interactive")
    pi.busy()
    pi.context["idle"] = True
    pi.send("agent_end", messages=[{"role": "assistant", "stopReason": "error"}])
    pi.talk.ask(sleep=500)
    pi.busy()
    pi.context["idle"] = True
    pi.send("agent_end", messages=[{"role": "assistant", "stopReason": "error"}])
    pi.talk.ask(sleep=500)
    pi.quit()
    assert companion.states(CARD) == ["idle", "running", "ready_for_review", "closed"]


def test_a_pi_that_says_when_it_has_settled_is_waited_for(pi: Pi, companion: FakeCompanion) -> None:
    """It may do more behind the end of a run, and look idle."""
    pi.run()
    pi.busy()
    pi.context["idle"] = True
    pi.send("agent_end", messages=[])
    pi.talk.ask(sleep=400)
    pi.quit()
    assert companion.states(CARD) == ["idle", "running", "ready_for_review", "running", "closed"]


def test_a_session_replaced_before_it_settles_harms_nothing(pi: Pi, companion: FakeCompanion) -> None:
    """The old context throws when it is asked; nobody asks it."""
    pi.run(settle=False)
    pi.quit("new")
    pi.talk.ask(sleep=1200)
    assert companion.states(CARD) == ["idle", "running", "ready_for_review", "closed"]


# --- history ---------------------------------------------------------------------------------------------

SESSION = json.loads((ROOT / "tests/fixtures/pi/entries.json").read_text(encoding="utf-8"))
HISTORY, NAMED = SESSION["entries"], SESSION["cards"]


@pytest.mark.parametrize("reason", ["startup", "resume", "fork", "reload"])
def test_history_is_restored_whatever_the_reason(
    make_pi: MakePi, companion: FakeCompanion, reason: str
) -> None:
    """User texts and what was edited for sure, with idle; a continued session says it is a startup."""
    pi = make_pi()
    pi.start(reason, branch=HISTORY)
    pi.quit()
    idle = [post.body["markdownPath"] for post in companion.posts if post.body["status"] == "idle"]
    assert idle == NAMED
    assert companion.states("/b/first.md") == ["idle", "closed"]


@pytest.mark.parametrize(
    "entry",
    [
        None,
        5,
        "text",
        [],
        {},
        {"type": "message"},
        {"type": "message", "message": None},
        {"type": "message", "message": "text"},
        message("user", None),
        message("user", [None, 5, {"type": "text"}, {"type": "text", "text": 7}]),
        message("assistant", [{"type": "toolCall", "id": 5, "name": "write"}, {"type": "toolCall"}]),
        call("c1", "write", None),
        message("assistant", [{"type": "toolCall", "id": "c1", "name": "write"}]),
        message("toolResult", [], nestedCalls=5),
        message("toolResult", [], nestedCalls={"calls": "no"}),
    ],
    ids=lambda entry: json.dumps(entry)[:60],
)
def test_damaged_entries_hide_no_others(make_pi: MakePi, companion: FakeCompanion, entry: object) -> None:
    """Whatever stands in a session, the rest of it is read."""
    pi = make_pi()
    pi.start(branch=[entry, *HISTORY, entry])
    pi.quit()
    assert companion.states("/b/first.md") == companion.states("/b/third.md") == ["idle", "closed"]


def test_another_branch_brings_its_cards(pi: Pi, companion: FakeCompanion) -> None:
    """The person moved in the tree of the session; the cards of before stay."""
    pi.run()
    pi.context["branch"] = HISTORY
    pi.send("session_tree", newLeafId="x", oldLeafId="y")
    pi.quit()
    assert companion.states("/b/first.md") == ["ready_for_review", "closed"]
    assert companion.states(CARD)[-1] == "closed"


# --- one session after another in one process --------------------------------------------------------------


@pytest.mark.parametrize("fresh", [False, True], ids=["the module kept", "the module loaded anew"])
def test_sessions_follow_each_other(pi: Pi, companion: FakeCompanion, fresh: bool) -> None:
    """/new and back: each says its own, in order, and the first one has its cards again."""
    pi.run()
    assert not pi.quit("new")[0]["promise"]  # Nothing to wait for: the process goes on.
    pi.talk.ask(load=True, fresh=fresh)
    pi.start("new", id="s2", file="/x/s2.jsonl")
    pi.run(f"see {OTHER}")
    pi.quit("resume")
    pi.talk.ask(load=True, fresh=fresh)
    pi.start("resume", id="s1", file="/x/s1.jsonl")
    pi.run("go on")
    pi.quit()
    once = ["idle", "running", "ready_for_review", "closed"]
    assert companion.states(CARD) == once * 2
    assert companion.states(OTHER) == once
    for post in companion.posts:
        assert post.body["sessionId"] == ("s1" if post.body["markdownPath"] == CARD else "s2")


def test_a_reload_while_the_companion_is_away_ends_with_the_newest(pi: Pi, companion: FakeCompanion) -> None:
    """The module loaded anew has the same queue: the old "closed" does not overtake "running"."""
    pi.run()
    companion.wait_for_states(CARD, ["idle", "running", "ready_for_review"])
    companion.stop()
    pi.quit("reload")
    pi.talk.ask(load=True, fresh=True)
    pi.start("reload")
    pi.busy()
    pi.talk.ask(sleep=100)
    companion.start()
    companion.wait_for(lambda it: it.states(CARD)[-1] == "running")
    pi.talk.ask(sleep=1500)
    assert set(companion.states(CARD)[3:]) == {"running"}  # Twice, if an answer was lost with the companion.


def test_nothing_is_said_behind_the_end(pi: Pi, companion: FakeCompanion) -> None:
    """A dialog that closes with the session, a tool that ends late."""
    pi.run()
    pi.quit("new")
    pi.send("ui_prompt_end", reason="ui_prompt", kind="select")
    pi.send("tool_result", toolName="write", input={"path": OTHER}, isError=False)
    pi.send("agent_settled", aborted=True)
    pi.quit()
    pi.talk.ask(sleep=200)
    assert companion.states()[-1] == "closed"
    assert companion.states(OTHER) == []


def test_an_extension_that_is_kept_for_the_next_session_goes_on(pi: Pi, companion: FakeCompanion) -> None:
    """Should a Pi not call it again."""
    pi.run()
    pi.quit("new")
    pi.start("new", id="s2")
    pi.run(f"see {OTHER}")
    pi.quit()
    once = ["idle", "running", "ready_for_review", "closed"]
    assert companion.states(CARD) == companion.states(OTHER) == once


def test_a_session_without_a_file_names_none(make_pi: MakePi, companion: FakeCompanion) -> None:
    """--no-session."""
    pi = make_pi()
    pi.context["file"] = None
    del pi.context["file"]
    pi.start()
    pi.run()
    pi.quit()
    assert companion.posts and all("sessionFile" not in post.body for post in companion.posts)


# --- the agent comes first ---------------------------------------------------------------------------------


def test_no_handler_throws_or_waits_whatever_comes(pi: Pi, companion: FakeCompanion) -> None:
    """Every event that is listened to, empty, odd, and with a context that throws."""
    names = pi.talk.ask(load=True, fresh=True)
    assert set(names) >= {"session_start", "input", "tool_result", "agent_settled", "session_shutdown"}
    for context in ({}, {"id": None}, {"id": 5, "branch": 7}, {"stale": True}, {**pi.context, "stale": True}):
        pi.context = context
        for name in [*names, "session_start"]:
            pi.send(name)
            pi.send(name, text=5, message=7, toolName="write", input="no", messages="no", reason={})
    ended = pi.talk.end()
    assert (ended.code, ended.stdout, ended.stderr) == (0, "", "")


@pytest.mark.parametrize("trouble", ["refused", "hanging"])
def test_a_companion_in_trouble_costs_one_bounded_wait(
    make_pi: MakePi, companion: FakeCompanion, trouble: str
) -> None:
    """Only the end of the process waits at all."""
    pi = make_pi(hasty=True)
    pi.start()
    companion.status = None
    if trouble == "refused":
        companion.stop()
    for _ in range(5):
        pi.run()
    (answer,) = pi.quit()
    assert answer["promise"]
    assert answer["sync"] < 500
    assert answer["ms"] < 10000  # The limit is 1 s; a machine may be busy.
    ended = pi.talk.end()
    assert (ended.code, ended.stdout, ended.stderr) == (0, "", "")


def test_no_timer_of_ours_holds_the_process(pi: Pi, companion: FakeCompanion) -> None:
    """Neither that of a run that may go on, nor those of what is to be posted again."""
    companion.stop()
    pi.run(settle=False)
    pi.send("agent_end", messages=[{"role": "assistant", "stopReason": "error"}])
    pi.talk.ask(sleep=100)
    assert pi.talk.ask(timers=True) == 0


def test_the_cards_come_back_with_the_companion(pi: Pi, companion: FakeCompanion) -> None:
    """Without a new prompt: what was lost meanwhile is said when it is back."""
    companion.stop()
    pi.run()
    pi.send("tool_result", toolName="edit", input={"path": OTHER}, isError=False)
    companion.start()
    companion.wait_for_states(CARD, ["ready_for_review"])
    companion.wait_for_states(OTHER, ["ready_for_review"])


def test_the_default_endpoint_is_the_contract_s(client: Path) -> None:
    """And MDELLO_COMPANION_URL replaces it; no other name does."""
    source = client.read_text("utf-8")
    assert source.count("127.0.0.1") == 1 and "http://127.0.0.1:51618" in source
    assert source.count("process.env") == 1 and "MDELLO_COMPANION_URL" in source
