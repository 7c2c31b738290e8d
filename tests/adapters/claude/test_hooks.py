"""Recorded sequences and traces of Claude Code's hooks, with the status after every event."""

import json
from pathlib import Path
from typing import Any, Dict, List, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.claude import events, hooks
from adapters.claude import payload as payloads
from adapters.contract import SessionState, Status

PAYLOADS = Path(__file__).parents[2] / "fixtures" / "claude" / "payloads"

LETTERS = {
    Status.IDLE: "I",
    Status.RUNNING: "R",
    Status.WAITING_FOR_INPUT: "W",
    Status.READY_FOR_REVIEW: "V",
    Status.CLOSED: "C",
}

# One letter per event of the recording, "-" where nothing is published: idle, running, waiting,
# ready for reView, closed. Streamed text, compaction, model switches and the like are metadata.
RECORDED = {
    # Headless. A plain turn: start, prompt, text, stop, end.
    "print-first": "IR-VC",
    "print-resume": "IR-VC",
    "print-continue": "IR-VC",
    "print-nopersist": "IR-VC",
    "print-aftercompact": "IR-VC",
    # The API failed: StopFailure settles like Stop.
    "print-api-401": "IR-VC",
    "print-api-429": "IR-VC",
    "print-api-500": "IR-VC",
    "print-api-529": "IR-VC",
    "print-api-error": "IR-VC",
    # Setup comes first; with --init-only there is no turn.
    "print-init": "-IR-VC",
    "print-init-only": "-IC",
    "print-maint": "-IR-VC",
    # A second session starts behind the first one.
    "print-main-agent": "IR-VCI",
    # Compaction keeps the status; its inner helper stops without ever having started.
    "print-compact": "I--I-C",
    # A tool that does not exist: only a batch.
    "print-ask-unavailable": "IR--VC",
    # A permission is asked, and refused at once without a word: the batch says so.
    "print-bash-denied": "IR-WR-VC",
    "print-bash-dontask": "IR---VC",
    "print-bash-ok": "IR----VC",
    "print-bash-fail": "IR----VC",
    "print-claude-md-cd": "IR----VC",
    "print-parallel": "IR------VC",
    # A changed card is news, although the status stays.
    "print-write": "IR--R--VC",
    "print-write-rel": "IR-R--VC",
    "print-edit": "IR----R--VC",
    "print-notes": "IR----VC",
    # Subagents in the foreground: begin, start, [write, result, batch,] stop, result, batch.
    "print-agent": "IR---R-----VC",
    "print-custom-agent": "IR---------VC",
    # Asked, answered, and told once more that it was answered.
    "print-elicit-headless": "IR-WRR---VC",
    # Terminal UI; most recordings begin in the middle.
    "tui-start": "I",
    "tui-exit": "C",
    "tui-hello": "R-V",
    "tui-atmention": "R-V",
    "tui-after-interrupt": "R-V",
    # idle_prompt says nothing new.
    "tui-idle-hello": "R-V-",
    "tui-bang": "-V",
    "tui-adddir": "-",
    "tui-configchange": "-",
    "tui-model": "--",
    # An unknown session is compacted: nothing is known of its status.
    "tui-compact": "----",
    "tui-clear": "CI",
    "tui-resume": "CI",
    "tui-interrupt": "CIR",
    # Refused by a person: silence.
    "tui-deny-no": "R-W",
    # Question: begin, permission of the same question, late notice, answer.
    "tui-ask-answered": "RWWWR--V",
    "tui-bash-accept": "R-WWR--V",
    "tui-write-perm": "CIR--WR--V",
    # A background agent's permission outlives the main stop; the agent's end is a pause until the
    # machine prompt; then the second stop settles.
    "tui-agent": "R------WWR--R-V",
    "tui-sig-HUP": "IR-VC",
    "tui-sig-INT": "IR-VC",
    "tui-sig-TERM": "IR-VC",
    "tui-winclose": "IR-VC",
    "tui-sig-KILL": "IR-V",
}

# Each on a session of its own, of which nothing is known.
ALONE = "".join(
    (
        "--",  # ConfigChange, DirectoryAdded
        "WR",  # Elicitation, its result
        "--",  # InstructionsLoaded, MessageDisplay
        "WR-W",  # dialog open, answered, prompt empty, permission wanted
        "WWWWW",  # PermissionRequest
        "--",  # PostCompact, PostModelSwitch
        "RR",  # PostToolBatch
        "RRRRRRRRRR",  # PostToolUse
        "R",  # PostToolUseFailure
        "--",  # PreCompact, PreModelSwitch
        "RWRRRRRRRR",  # PreToolUse, the second one a question
        "CCCC",  # SessionEnd
        "I-III",  # SessionStart, the second one a compaction
        "--",  # Setup
        "VR",  # Stop, the second one with a running agent
        "VVVV",  # StopFailure
        "--",  # SubagentStart
        "---",  # SubagentStop
        "-",  # UserPromptExpansion
        "R",  # UserPromptSubmit
    )
)

CARDS = {
    "print-agent": ["/home/dev/board/sub-card.md"],
    "print-edit": ["/home/dev/board/card.md"],
    "print-write": ["/home/dev/board/new-card.md"],
    "print-write-rel": ["/home/dev/project/relative-card.md"],
    "tui-agent": ["/home/dev/board/sub-card.md"],
    "tui-atmention": ["/home/dev/board/card.md"],
    "tui-hello": ["/home/dev/board/card.md"],
    "tui-write-perm": ["/home/dev/board/new-card.md"],
}


def recording(case: str) -> List[Dict[str, Any]]:
    """The payloads of one case, in order of arrival."""
    return [json.loads(line) for line in (PAYLOADS / f"{case}.jsonl").read_text("utf-8").splitlines()]


def test_every_recording_has_its_expectation() -> None:
    """No recorded sequence is without a test."""
    assert {path.stem for path in PAYLOADS.glob("*.jsonl")} == {*RECORDED, "all_events"}
    assert len(RECORDED) == 53


@pytest.mark.parametrize("case", sorted(RECORDED))
def test_status_after_every_event_of_a_recording(case: str) -> None:
    """Played back in order, each event publishes what the table says."""
    states: Dict[str, Optional[SessionState]] = {}
    told = ""
    cards: List[str] = []
    for payload in recording(case):
        session = payloads.session_of(payload)
        translation = hooks.translate(payload, states.get(session))
        assert translation.known
        states[session] = translation.state or states.get(session)
        told += LETTERS[translation.event.status] if translation.event else "-"
        cards += translation.event.card_paths if translation.event else ()
    assert told == RECORDED[case]
    assert cards == CARDS.get(case, [])


def test_status_after_every_event_on_an_unseen_session() -> None:
    """Each recorded kind of event, as the first one after a restart of the companion."""
    told = ""
    for payload in recording("all_events"):
        event = hooks.translate(payload, None).event
        told += LETTERS[event.status] if event else "-"
    assert told == ALONE


# The contract's traces. Values that differ from it on purpose have a reason beside them.


def test_trace_of_an_unseen_session(talk: Any) -> None:
    """A stop settles it; the first tool result says it runs, the second one nothing new."""
    assert talk.send("Stop") == "ready_for_review"
    again = type(talk)()
    assert [again.post("t"), again.post("u")] == ["running", "-"]


def test_trace_of_a_late_result(talk: Any) -> None:
    """A tool result behind the stop means that the session runs again."""
    assert [talk.prompt(), talk.send("Stop"), talk.post("t")] == ["running", "ready_for_review", "running"]


def test_trace_of_a_closed_session(talk: Any) -> None:
    """Closed stays closed until a start that is no compaction."""
    told = [talk.prompt(), talk.end(), talk.start("compact"), talk.send("Stop"), talk.start("resume")]
    assert told == ["running", "closed", "closed", "-", "idle"]
    assert talk.prompt() == "running"


def test_trace_of_two_permissions(talk: Any) -> None:
    """Each refusal releases its own permission only."""
    told = [talk.prompt(), talk.permission(tool_use_id="a"), talk.permission(tool_use_id="b")]
    assert told == ["running", "waiting_for_input", "waiting_for_input"]
    assert [talk.denied("a"), talk.denied("b")] == ["waiting_for_input", "running"]


def test_trace_of_a_question_beside_a_permission(talk: Any) -> None:
    """The permission's result does not answer the question."""
    told = [talk.prompt(), talk.pre("q1", "AskUserQuestion"), talk.permission(tool_use_id="t2")]
    assert told == ["running", "waiting_for_input", "waiting_for_input"]
    assert [talk.post("t2"), talk.post("q1", "AskUserQuestion")] == ["-", "running"]


def test_trace_of_a_notice_about_a_known_permission(talk: Any) -> None:
    """A notification without id adds nothing to the permission it speaks of."""
    told = [
        talk.prompt(),
        talk.permission(tool_use_id="t1"),
        talk.notify("permission_prompt"),
        talk.post("t1"),
    ]
    assert told == ["running", "waiting_for_input", "waiting_for_input", "running"]


def test_trace_of_an_anonymous_permission(talk: Any) -> None:
    """Any result of the same thread releases a permission that belongs to no known call."""
    assert [talk.prompt(), talk.permission(), talk.post("any")] == ["running", "waiting_for_input", "running"]


def test_trace_of_an_elicitation(talk: Any) -> None:
    """A tool's result does not answer what a server asked; the elicitation's own result does."""
    told = [talk.prompt(), talk.send("Elicitation", elicitation_id="e"), talk.post("t")]
    assert told == ["running", "waiting_for_input", "-"]
    assert talk.send("ElicitationResult", elicitation_id="e") == "running"


def test_trace_of_another_agent_that_needs_input(talk: Any) -> None:
    """No tool result releases it, the next prompt does."""
    told = [talk.prompt(), talk.notify("agent_needs_input"), talk.post("t"), talk.prompt()]
    assert told == ["running", "waiting_for_input", "-", "running"]


def test_trace_of_a_subagents_permission_without_an_id(talk: Any) -> None:
    """The subagent's next result releases it. (The contract's blocker sticks until the stop.)"""
    told = [talk.prompt(), talk.permission(agent="g"), talk.post("t", agent="g"), talk.send("Stop")]
    assert told == ["running", "waiting_for_input", "running", "ready_for_review"]


def test_trace_of_a_quota(talk: Any) -> None:
    """A stale quota waits for a person, a disabled one is settled."""
    told = [
        talk.prompt(),
        talk.notify("quota_auto_resume_stale"),
        talk.notify("quota_auto_resume_disabled"),
    ]
    assert told == ["running", "waiting_for_input", "ready_for_review"]


# What is published


@pytest.mark.parametrize("name", [policy.name for policy in events.POLICIES if policy.transport is None])
def test_metadata_is_known_and_means_nothing(talk: Any, name: str) -> None:
    """An event that we do not subscribe to is neither unknown nor news."""
    translation = talk.translate({"hook_event_name": name, "session_id": "s"})
    assert (translation.event_name, translation.known) == (name, True)
    assert (translation.event, translation.state) == (None, None)


@pytest.mark.parametrize("name", [policy.name for policy in events.SUBSCRIBED])
def test_an_event_without_a_session_means_nothing(talk: Any, name: str) -> None:
    """Without a usable session id there is nobody to tell of."""
    for session in (None, "", 7, ["s"], "x" * 600, "\ud800"):
        translation = talk.translate({"hook_event_name": name, "session_id": session})
        assert translation.known
        assert (translation.event, translation.state) == (None, None)


def test_unknown_events_are_told_by_name(talk: Any) -> None:
    """The name comes back, cut to a fit length and fit to be written."""
    assert talk.translate({"hook_event_name": "Later", "session_id": "s"}).known is False
    assert talk.translate({"hook_event_name": "L" * 500}).event_name == "L" * 64
    assert talk.translate({"hook_event_name": "stop"}).known is False
    assert talk.translate({"hook_event_name": "\ud800x"}).event_name == "?x"


@pytest.mark.parametrize(
    "payload", [None, [], "Stop", 3, {}, {"hook_event_name": None}, {"hook_event_name": []}]
)
def test_a_payload_without_a_name_is_unknown(payload: Any) -> None:
    """Whatever is no object with a name is counted as unknown, under the empty name."""
    translation = hooks.translate(payload, None)
    assert (translation.event_name, translation.known, translation.event) == ("", False, None)
    assert payloads.session_of(payload) == ""


def test_routine_events_are_published_only_when_they_are_news(talk: Any) -> None:
    """Tool calls, batches and ends of subagents are many; most change nothing."""
    talk.prompt()
    assert [talk.pre("t"), talk.post("t"), talk.failed("u"), talk.batch("t")] == ["-"] * 4
    assert talk.agent_stop("g") == "-"


@pytest.mark.parametrize("name", sorted(set(hooks.EFFECTS) - {"PostToolUse", "UserPromptSubmit"}))
def test_no_other_event_finds_cards(talk: Any, name: str) -> None:
    """Neither a failed edit, nor one that begins, is asked about or is told again in a batch."""
    edit = {"tool_name": "Write", "tool_input": {"file_path": "/b/c.md"}, "tool_use_id": "t"}
    talk.prompt()
    talk.send(name, prompt="see /b/c.md", cwd="/b", tool_calls=[edit], **edit)
    assert talk.cards == []


def test_an_unchanged_state_is_not_handed_back(talk: Any) -> None:
    """So that nothing is written for an event that changed nothing."""
    assert (
        talk.translate({"hook_event_name": "SubagentStop", "session_id": "s", "agent_id": "g"}).state is None
    )
    talk.prompt()
    assert talk.translate({"hook_event_name": "PostToolUse", "session_id": "s"}).state is None


def test_a_started_session_is_remembered(talk: Any) -> None:
    """A compaction behind a start keeps its status; before any event it means nothing."""
    assert talk.start("compact") == "-"
    assert talk.state is None
    assert [talk.start(), talk.start("compact")] == ["idle", "idle"]


@pytest.mark.parametrize("source", ["startup", "resume", "clear", "fork", "later", None])
def test_every_start_but_a_compaction_begins_anew(talk: Any, source: Any) -> None:
    """Blockers and phase of an earlier life are gone, and a closed session is open again."""
    talk.prompt()
    talk.permission()
    assert talk.start(source) == "idle"
    talk.end()
    assert talk.start(source) == "idle"


def test_a_compaction_keeps_blockers(talk: Any) -> None:
    """The status in the middle of a turn outlives a compaction."""
    talk.prompt()
    assert talk.start("compact") == "running"
    talk.permission()
    assert talk.start("compact") == "waiting_for_input"


def test_a_closed_session_ignores_all_but_a_start(talk: Any) -> None:
    """A late event of a session that has ended opens nothing."""
    talk.end()
    state = talk.state
    for name in hooks.EFFECTS:
        if name != "SessionStart":
            late = {"hook_event_name": name, "session_id": "s", "prompt": "/b/c.md", "tool_use_id": "t"}
            translation = talk.translate(late)
            assert (translation.known, translation.event) == (True, None)
    assert talk.state == state


def test_the_session_file_is_the_transcript(talk: Any) -> None:
    """Every published event names it; what is no usable path is left out."""
    talk.prompt(transcript_path="/t/s.jsonl")
    assert talk.events[-1].session_file == "/t/s.jsonl"
    for value in (None, "", 5, ["/t"], "/" + "x" * 5000, "/\ud800"):
        talk.prompt(transcript_path=value)
        assert talk.events[-1].session_file is None


def test_only_a_start_reads_older_cards(talk: Any) -> None:
    """The transcript is searched when a session opens, with the folder for relative paths."""
    talk.start("resume", transcript_path="/t/s.jsonl", cwd="/w")
    assert (talk.events[-1].discover_from, talk.events[-1].discover_cwd) == ("/t/s.jsonl", "/w")
    talk.prompt(transcript_path="/t/s.jsonl", cwd="/w")
    assert (talk.events[-1].discover_from, talk.events[-1].discover_cwd) == (None, None)
    talk.start("resume", cwd="/w")
    assert (talk.events[-1].discover_from, talk.events[-1].discover_cwd) == (None, None)


def discoveries(talk: Any) -> List[Optional[str]]:
    """Of every published event, the transcript that it lets be read."""
    return [event.discover_from for event in talk.events]


def test_a_forks_transcript_is_read_once_it_is_there(talk: Any) -> None:
    """It appears behind the first prompt: the next published event lets it be read, once."""
    there = {"transcript_path": "/t/s.jsonl", "cwd": "/w"}
    assert talk.start("fork", **there) == "idle"
    assert talk.prompt(**there) == "running"
    assert talk.pre("t", **there) == "-"
    assert talk.stop(**there) == "ready_for_review"
    assert talk.events[-1].discover_cwd == "/w"
    assert talk.prompt(**there) == "running"
    assert talk.stop(**there) == "ready_for_review"
    assert discoveries(talk) == ["/t/s.jsonl", None, "/t/s.jsonl", None, None]


@pytest.mark.parametrize("source", ["startup", "resume", "clear"])
def test_a_session_seen_from_its_start_is_read_no_more(talk: Any, source: str) -> None:
    """What it works on was told by its events."""
    talk.start(source, transcript_path="/t/s.jsonl")
    talk.prompt(transcript_path="/t/s.jsonl")
    talk.stop(transcript_path="/t/s.jsonl")
    assert discoveries(talk)[1:] == [None, None]


def test_a_session_first_seen_in_its_middle_has_older_cards(talk: Any) -> None:
    """The companion started late, or a fork of 2.1.197 told no start: one look at the transcript."""
    talk.prompt(transcript_path="/t/s.jsonl")
    talk.permission(transcript_path="/t/s.jsonl")
    talk.stop(transcript_path="/t/s.jsonl")
    assert discoveries(talk) == [None, "/t/s.jsonl", None]


# Anything may come in

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda children: (
        st.lists(children, max_size=4) | st.dictionaries(st.text(max_size=8), children, max_size=4)
    ),
    max_leaves=10,
)
IDS = st.sampled_from(["a", "b", "g", "", "x" * 300, "é"]) | JSON
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "hook_event_name": st.sampled_from([*events.EVENTS, "Later"]) | JSON,
        "session_id": st.just("s") | JSON,
        "source": st.sampled_from(["startup", "compact", "resume"]) | JSON,
        "prompt": st.sampled_from(["/b/c.md", "<task-notification>"]) | JSON,
        "prompt_id": IDS,
        "tool_use_id": IDS,
        "agent_id": IDS,
        "elicitation_id": IDS,
        "tool_name": st.sampled_from(["Bash", "Write", "AskUserQuestion"]) | JSON,
        "tool_input": st.fixed_dictionaries({"file_path": st.just("/b/c.md") | JSON}) | JSON,
        "tool_calls": st.lists(st.fixed_dictionaries({"tool_use_id": IDS}) | JSON, max_size=3) | JSON,
        "background_tasks": st.lists(
            st.fixed_dictionaries({"id": IDS, "type": st.just("subagent"), "status": st.just("running")})
            | JSON,
            max_size=3,
        )
        | JSON,
        "notification_type": st.sampled_from(events.NOTIFICATION_TYPES) | JSON,
        "mcp_server_name": IDS,
        "mcp_server": st.fixed_dictionaries({"name": IDS}) | JSON,
        "transcript_path": JSON,
        "cwd": JSON,
    },
)


@given(st.lists(FIELDS, max_size=12))
def test_no_sequence_of_payloads_raises(payloads: List[Dict[str, Any]]) -> None:
    """Whatever types the fields have, the state stays small and JSON, and the rest is sound."""
    state: Optional[SessionState] = None
    for payload in payloads:
        translation = hooks.translate(payload, state)
        state = translation.state or state
        assert len(json.dumps(state)) < 64 * 1024
        assert len(translation.event_name) <= 64
        if translation.event:
            assert translation.event.session_id == payload["session_id"]
            json.dumps(list(translation.event.card_paths), ensure_ascii=False).encode("utf-8")


@given(FIELDS, st.dictionaries(st.sampled_from(["phase", "turn", "blockers", "open", "finished"]), JSON))
def test_no_state_raises(payload: Dict[str, Any], state: Dict[str, Any]) -> None:
    """A state that some other version wrote, or that was damaged, is no reason to fail."""
    translation = hooks.translate(payload, state)
    if translation.state is not None:
        assert json.loads(json.dumps(translation.state)) == translation.state


@given(JSON, JSON)
def test_no_json_value_raises(payload: Any, state: Any) -> None:
    """Not even a payload or a state that is no object."""
    assert hooks.translate(payload, state).event is None
    payloads.session_of(payload)


# --- pauses --------------------------------------------------------------------------------------


def agent_task(agent: str) -> Dict[str, str]:
    return {"id": agent, "type": "subagent", "status": "running"}


def paused(talk: Any) -> bool:
    """What the latest published event said."""
    return bool(talk.events[-1].paused)


def test_a_stop_that_leaves_subagents_at_work_is_a_pause(talk: Any) -> None:
    """Until the main thread works again."""
    talk.prompt()
    assert not paused(talk)
    talk.stop(agent_task("g"))
    assert paused(talk)
    assert talk.permission(agent="g") == "waiting_for_input"
    assert paused(talk)
    assert talk.post("t1", agent="g") == "running"
    assert paused(talk)
    talk.machine_prompt()
    assert not paused(talk)
    talk.stop()
    assert not paused(talk)


def test_the_pause_outlasts_the_last_subagent(talk: Any) -> None:
    """Between its end and the machine prompt the main thread still stands."""
    talk.prompt()
    talk.stop(agent_task("g"))
    talk.permission(agent="g")
    talk.send("SubagentStop", agent_id="g")
    assert talk.events[-1].status is Status.RUNNING and paused(talk)
    talk.machine_prompt()
    assert not paused(talk)


@pytest.mark.parametrize("more", [[], [{"id": "b", "type": "shell", "status": "running"}]])
def test_a_stop_that_leaves_no_subagent_is_none(talk: Any, more: List[Any]) -> None:
    """A background shell does not count."""
    talk.prompt()
    talk.stop(*more)
    assert not paused(talk)


def test_the_main_threads_own_tools_end_a_pause_and_that_is_told(talk: Any) -> None:
    """A queued prompt has no event of its own; the status stays what it was."""
    talk.prompt()
    talk.stop(agent_task("g"))
    assert talk.pre("t1", agent="g") == "-"
    assert talk.pre("t2") == "running"
    assert not paused(talk)
    assert talk.post("t1", agent="g") == "-"
    talk.stop(agent_task("g"))
    assert paused(talk)


def test_an_ended_or_restarted_session_is_not_paused(talk: Any) -> None:
    """It begins afresh."""
    talk.prompt()
    talk.stop(agent_task("g"))
    talk.start("compact")
    assert paused(talk)
    talk.send("SessionEnd", reason="other")
    assert not paused(talk)
    talk.start("resume")
    assert not paused(talk)


def test_a_killed_subagent_ends_the_pause_by_its_report(talk: Any) -> None:
    """It has no SubagentStop; the machine prompt comes all the same."""
    talk.prompt()
    talk.stop(agent_task("g"))
    talk.machine_prompt()
    assert not paused(talk)
    assert talk.stop() == "ready_for_review"
    assert not paused(talk)
