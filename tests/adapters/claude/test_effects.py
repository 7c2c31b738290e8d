"""The traps of Claude Code's events: pairing, threads, pauses, queues, and order."""

from typing import Any, Dict

import pytest

RUNNING, WAITING, REVIEW = "running", "waiting_for_input", "ready_for_review"
MAKE = {"command": "make"}
TEST = {"command": "make test"}


def agent_task(agent: str, status: str = "running", kind: str = "subagent") -> Dict[str, str]:
    """One entry of ``background_tasks``."""
    return {"id": agent, "type": kind, "status": status, "description": "works"}


# A permission and its tool call


def test_a_permission_belongs_to_the_call_with_its_input(talk: Any) -> None:
    """Of two open calls of one tool, the one with the same input is meant."""
    talk.prompt()
    talk.pre("t1", tool_input=MAKE)
    talk.pre("t2", tool_input=TEST)
    assert talk.permission(tool_input=MAKE) == WAITING
    assert talk.post("t2", tool_input=TEST) == "-"
    assert talk.post("t1", tool_input=MAKE) == RUNNING


def test_a_permission_belongs_to_the_newest_call_of_its_input(talk: Any) -> None:
    """The same work twice: the dialog is about the later call."""
    talk.prompt()
    talk.pre("t1")
    talk.pre("t2")
    assert talk.permission() == WAITING
    assert talk.post("t1") == "-"
    assert talk.post("t2") == RUNNING


def test_two_permissions_of_the_same_work_are_two_waits(talk: Any) -> None:
    """A second request is about the other call."""
    talk.prompt()
    talk.pre("t1")
    talk.pre("t2")
    assert [talk.permission(), talk.permission()] == [WAITING, WAITING]
    assert [talk.post("t2"), talk.post("t1")] == ["-", RUNNING]


def test_a_permission_whose_input_was_rewritten_belongs_to_its_tool(talk: Any) -> None:
    """When no input fits, the newest open call of the tool is meant."""
    talk.prompt()
    talk.pre("t1", "Write", tool_input={"file_path": "/b/c.md"})
    talk.pre("t2", "Bash")
    assert talk.permission("Write", tool_input={"file_path": "/b/c.md", "content": "x"}) == WAITING
    assert talk.post("t2", "Bash") == "-"
    assert talk.failed("t1", "Write") == RUNNING


def test_a_permission_never_belongs_to_another_thread(talk: Any) -> None:
    """The main thread and its subagent do the same work: each has its own dialog."""
    talk.prompt()
    talk.pre("t1")
    talk.pre("t2", agent="g")
    assert talk.permission() == WAITING
    assert talk.post("t2", agent="g") == "-"
    assert talk.post("t1") == RUNNING


def test_the_order_of_keys_does_not_matter(talk: Any) -> None:
    """One input, spelled in two orders, is one input."""
    talk.prompt()
    talk.pre("t1", tool_input={"a": 1, "b": 2})
    talk.pre("t2", tool_input={"a": 1})
    talk.permission(tool_input={"b": 2, "a": 1})
    assert talk.post("t2", tool_input={"a": 1}) == "-"
    assert talk.post("t1", tool_input={"a": 1, "b": 2}) == RUNNING


def test_a_question_and_its_permission_are_one_wait(talk: Any) -> None:
    """AskUserQuestion fires both; the answer, whose input has grown, releases both."""
    asked, answered = {"questions": ["?"]}, {"questions": ["?"], "answers": {"?": "yes"}}
    talk.prompt()
    assert talk.pre("q", "AskUserQuestion", tool_input=asked) == WAITING
    assert talk.permission("AskUserQuestion", tool_input=asked) == WAITING
    assert len(talk.state["blockers"]) == 1
    assert talk.post("q", "AskUserQuestion", tool_input=answered) == RUNNING


def test_a_question_whose_beginning_was_missed_is_answered_by_its_result(talk: Any) -> None:
    """The companion started in between: the permission alone stands for the question."""
    assert talk.permission("AskUserQuestion") == WAITING
    assert talk.post("q", "AskUserQuestion") == RUNNING


def test_a_plan_waits_for_its_approval(talk: Any) -> None:
    """ExitPlanMode asks for permission like any tool; its plan file is not a card of the session."""
    talk.prompt()
    assert talk.pre("p", "ExitPlanMode", tool_input={}) == "-"
    assert talk.permission("ExitPlanMode", tool_input={}) == WAITING
    plan = {"plan": "x", "filePath": "/home/dev/.claude/plans/p.md"}
    assert talk.post("p", "ExitPlanMode", tool_input={}, tool_response=plan) == RUNNING
    assert talk.cards == []


def test_a_failure_releases_like_a_result(talk: Any) -> None:
    """The tool was allowed, and failed."""
    talk.prompt()
    talk.pre("t1")
    assert [talk.permission(), talk.failed("t1")] == [WAITING, RUNNING]


def test_a_denial_by_the_program_releases(talk: Any) -> None:
    """PermissionDenied has the id; without one the same pairing finds it."""
    talk.prompt()
    talk.pre("t1")
    assert [talk.permission(), talk.denied("t1")] == [WAITING, RUNNING]
    talk.pre("t2", tool_input=TEST)
    talk.permission(tool_input=TEST)
    assert talk.denied("", tool_input=TEST) == RUNNING


def test_a_batch_releases_what_no_result_closed(talk: Any) -> None:
    """A refusal in headless mode is seen only here."""
    talk.prompt()
    talk.pre("t1")
    talk.permission()
    assert talk.batch("t2") == "-"
    assert talk.batch("t1", "t2") == RUNNING


def test_a_batch_releases_the_anonymous_waits_of_its_thread(talk: Any) -> None:
    """All calls of the reply are over, so the unknown one is too; a subagent's goes on."""
    talk.prompt()
    talk.permission()
    talk.permission(agent="g")
    assert talk.batch("t1") == "-"
    assert talk.batch("t2", agent="g") == RUNNING


@pytest.mark.parametrize("calls", [None, 5, "t1", [], [None, 5, "t1", {}, {"tool_use_id": 7}]])
def test_a_batch_of_another_form_is_still_an_event_of_the_turn(talk: Any, calls: Any) -> None:
    """Lists of a wrong type count as empty."""
    talk.prompt()
    talk.permission()
    assert talk.send("PostToolBatch", tool_calls=calls) == RUNNING


def test_a_request_behind_its_result_does_not_block(talk: Any) -> None:
    """The request is sent beside the dialog and can be overtaken by the answer's result."""
    talk.prompt()
    talk.pre("t1")
    assert [talk.post("t1"), talk.permission()] == ["-", "-"]
    talk.pre("t2")
    assert talk.permission() == WAITING


def test_a_request_with_an_id_behind_its_result_does_not_block(talk: Any) -> None:
    """Should a version send the id, it is believed."""
    talk.prompt()
    talk.pre("t1")
    assert [talk.post("t1"), talk.permission(tool_use_id="t1")] == ["-", "-"]


def test_a_request_behind_the_stop_does_not_block(talk: Any) -> None:
    """However late it is."""
    talk.prompt()
    talk.pre("t1")
    talk.post("t1")
    talk.stop()
    assert talk.permission() == "-"


def test_an_overtaken_question_does_not_block(talk: Any) -> None:
    """The question's input has grown by the answer; the remembered one is compared."""
    talk.prompt()
    talk.pre("q", "AskUserQuestion", tool_input={"q": 1})
    assert talk.post("q", "AskUserQuestion", tool_input={"q": 1, "answers": 2}) == RUNNING
    assert talk.permission("AskUserQuestion", tool_input={"q": 1}) == "-"


def test_an_asked_call_is_not_overtaken_twice(talk: Any) -> None:
    """The request of the first call was seen; the same work asked for again is a new wait."""
    talk.prompt()
    talk.pre("t1")
    assert [talk.permission(), talk.post("t1")] == [WAITING, RUNNING]
    assert talk.permission() == WAITING


# Threads


def test_a_subagents_unknown_permission_waits_for_its_own_result(talk: Any) -> None:
    """Results of the main thread and of other subagents do not release it."""
    talk.prompt()
    assert talk.permission(agent="g") == WAITING
    assert [talk.post("t1"), talk.post("t2", agent="h")] == ["-", "-"]
    assert talk.post("t3", agent="g") == RUNNING


def test_a_main_unknown_permission_is_not_released_by_a_subagent(talk: Any) -> None:
    """A subagent works on while the main thread's dialog is open."""
    talk.prompt()
    assert talk.permission() == WAITING
    assert talk.post("t1", agent="g") == "-"
    assert talk.post("t2") == RUNNING


def test_a_subagents_end_releases_what_was_its(talk: Any) -> None:
    """Of whichever kind."""
    talk.prompt()
    talk.pre("t1", agent="g")
    talk.permission(agent="g")
    talk.send("Elicitation", mcp_server_name="tiny", agent_id="g")
    assert talk.agent_stop("h") == "-"
    assert talk.agent_stop("g") == RUNNING


def test_an_inner_helper_that_never_started_means_nothing(talk: Any) -> None:
    """Compaction ends one with an empty type; on an unseen session it leaves no trace."""
    assert talk.agent_stop("x", agent_type="") == "-"
    assert talk.state is None
    talk.prompt()
    talk.stop()
    assert talk.agent_stop("x", agent_type="") == "-"
    assert talk.agent_stop("", agent_type="") == "-"


# The main thread's stop


def test_a_stop_clears_the_main_threads_waits(talk: Any) -> None:
    """Whatever was open there is over."""
    talk.prompt()
    talk.pre("q", "AskUserQuestion")
    talk.permission()
    talk.send("Elicitation", mcp_server_name="tiny")
    talk.notify("agent_needs_input")
    assert talk.stop() == REVIEW


def test_a_failed_turn_settles_like_a_stop(talk: Any) -> None:
    """There is no status for an error."""
    talk.prompt()
    talk.permission()
    assert talk.send("StopFailure", error="rate_limit") == REVIEW


def test_a_stop_with_a_running_subagent_is_a_pause(talk: Any) -> None:
    """Running until the stop that lists none, the machine prompt in between."""
    talk.prompt()
    assert talk.stop(agent_task("g")) == RUNNING
    assert [talk.pre("t1", agent="g"), talk.post("t1", agent="g")] == ["-", "-"]
    # Its own last payload still lists it as running.
    assert talk.agent_stop("g", background_tasks=[agent_task("g")]) == "-"
    assert talk.machine_prompt() == RUNNING
    assert talk.stop() == REVIEW


def test_a_pause_lasts_while_another_subagent_works(talk: Any) -> None:
    """The turn about the first one's report stops with the second one still listed."""
    talk.prompt()
    talk.stop(agent_task("g"), agent_task("h"))
    talk.agent_stop("g")
    talk.machine_prompt()
    assert talk.stop(agent_task("h")) == RUNNING
    talk.agent_stop("h")
    talk.machine_prompt()
    assert talk.stop() == REVIEW


def test_a_subagents_permission_outlives_the_stop(talk: Any) -> None:
    """The session waits for a person although its main thread has stopped."""
    talk.prompt()
    talk.pre("t1", agent="g")
    talk.permission(agent="g")
    assert talk.stop(agent_task("g")) == WAITING
    assert talk.post("t1", agent="g") == RUNNING
    talk.agent_stop("g")
    talk.machine_prompt()
    assert talk.stop() == REVIEW


def test_a_subagents_permission_after_the_stop_waits(talk: Any) -> None:
    """The dialog opens while the main thread is idle."""
    talk.prompt()
    talk.stop(agent_task("g"))
    talk.pre("t1", agent="g")
    assert talk.permission(agent="g") == WAITING
    assert talk.agent_stop("g") == RUNNING


def test_a_stop_that_lists_no_subagents_ends_their_waits(talk: Any) -> None:
    """Who is not listed does not wait any more."""
    talk.prompt()
    talk.permission(agent="g")
    assert talk.stop(agent_task("h")) == RUNNING
    assert talk.stop() == REVIEW


@pytest.mark.parametrize("fields", [{}, {"background_tasks": None}, {"background_tasks": "none"}])
def test_a_stop_that_says_nothing_of_subagents_leaves_their_waits(talk: Any, fields: Any) -> None:
    """Only a background subagent can wait while the main thread stops, so it still does."""
    talk.prompt()
    talk.permission(agent="g")
    assert talk.send("Stop", **fields) == WAITING
    # Nothing is known of a subagent at work, so its result does not make the session run for ever.
    assert talk.post("t1", agent="g") == REVIEW


def test_a_failed_turn_does_not_end_a_pause(talk: Any) -> None:
    """The subagent works on and will be reported; the failure says nothing about it."""
    talk.prompt()
    talk.stop(agent_task("g"))
    talk.prompt()
    assert talk.send("StopFailure", error="server_error") == RUNNING
    talk.agent_stop("g")
    talk.machine_prompt()
    assert talk.stop() == REVIEW


@pytest.mark.parametrize(
    "task",
    [
        agent_task("b1", kind="shell"),
        agent_task("g", status="completed"),
        agent_task(""),
        {},
        None,
        "subagent",
    ],
)
def test_other_background_tasks_do_not_keep_a_session_running(talk: Any, task: Any) -> None:
    """A shell may run for ever, and an ended subagent is no reason."""
    talk.prompt()
    assert talk.stop(task) == REVIEW


def test_a_main_tool_event_after_the_stop_runs_again(talk: Any) -> None:
    """A queued prompt, or a shell line that the model answers, begins a turn without a prompt."""
    for event in (talk.pre, talk.post, talk.failed, talk.batch):
        talk.prompt()
        talk.stop()
        assert event("t1") == RUNNING
        assert talk.stop() == REVIEW


def test_a_main_tool_event_after_the_stop_still_waits_for_a_subagent(talk: Any) -> None:
    """Running again would hide the open dialog."""
    talk.prompt()
    talk.permission(agent="g")
    talk.send("Stop")
    assert talk.pre("t1") == "-"
    assert talk.start("compact") == WAITING


def test_an_unknown_subagent_after_the_stop_wakes_nothing_but_finds_cards(talk: Any) -> None:
    """Its status could never settle; the card that it wrote is one of the session all the same."""
    talk.prompt()
    talk.stop()
    assert [talk.pre("t1", agent="g"), talk.post("t1", agent="g"), talk.batch("t1", agent="g")] == ["-"] * 3
    assert talk.post("t2", "Write", agent="g", tool_input={"file_path": "/b/c.md"}) == REVIEW
    assert talk.cards == ["/b/c.md"]


# Prompts


def test_a_queued_prompt(talk: Any) -> None:
    """It comes at once, with the running turn's id; its own turn begins with a tool event."""
    assert talk.prompt(prompt_id="p1") == RUNNING
    talk.pre("t1", prompt_id="p1")
    assert talk.prompt("and /b/c.md", prompt_id="p1") == RUNNING
    assert talk.permission(prompt_id="p1") == WAITING
    assert talk.pre("t9", prompt_id="p1") == "-"
    assert talk.post("t1", prompt_id="p1") == RUNNING
    assert talk.stop(prompt_id="p1") == REVIEW
    assert talk.pre("t2", prompt_id="p2") == RUNNING
    assert talk.stop(prompt_id="p2") == REVIEW
    assert talk.cards == ["/b/c.md"]


def test_another_turn_releases_what_a_refusal_left(talk: Any) -> None:
    """Refused by a person with a prompt in the queue: the next turn's first event says so."""
    talk.prompt(prompt_id="p1")
    talk.prompt(prompt_id="p1")
    talk.pre("t1", prompt_id="p1")
    assert talk.permission(prompt_id="p1") == WAITING
    assert talk.pre("t2", tool_input=TEST, prompt_id="p2") == RUNNING
    # The refused call is over too: it is not taken for the one of this request.
    assert talk.permission(tool_input=MAKE, prompt_id="p2") == WAITING
    assert talk.post("t2", tool_input=TEST, prompt_id="p2") == RUNNING


def test_another_turn_leaves_a_subagents_wait(talk: Any) -> None:
    """Background subagents keep the id of the turn that started them."""
    talk.prompt(prompt_id="p1")
    talk.permission(agent="g", prompt_id="p1")
    talk.stop(agent_task("g"), prompt_id="p1")
    assert talk.pre("t1", prompt_id="p2") == WAITING  # told, for it is no pause any more
    assert talk.post("t2", agent="g", prompt_id="p1") == RUNNING


def test_a_refusal_waits_until_the_next_prompt(talk: Any) -> None:
    """Silence follows a refusal; a person who types has no dialog open, not even a subagent's."""
    talk.prompt()
    talk.pre("t1")
    talk.permission()
    talk.permission(agent="g")
    assert talk.prompt() == RUNNING


def test_a_machine_prompt_leaves_a_subagents_wait(talk: Any) -> None:
    """One subagent reports while another one waits for a person."""
    talk.prompt()
    talk.permission()
    talk.permission(agent="g")
    assert talk.machine_prompt() == WAITING
    assert talk.agent_stop("g") == RUNNING


def test_a_reopened_session_forgets_its_subagents(talk: Any) -> None:
    """Closed and resumed under the same id: they died with the process."""
    talk.prompt()
    talk.permission(agent="g")
    talk.stop(agent_task("g"))
    assert [talk.end(), talk.start("resume"), talk.prompt(), talk.stop()] == [
        "closed",
        "idle",
        RUNNING,
        REVIEW,
    ]
    assert talk.post("t1", agent="g") == "-"


# Elicitations


def test_a_form_is_known_by_its_server(talk: Any) -> None:
    """Two servers ask at once; each answer releases its own."""
    talk.prompt()
    assert talk.send("Elicitation", mcp_server_name="one", mode="form") == WAITING
    assert talk.send("Elicitation", mcp_server_name="two", mode="form") == WAITING
    assert talk.send("ElicitationResult", mcp_server_name="one", action="accept") == WAITING
    assert talk.send("ElicitationResult", mcp_server_name="two", action="cancel") == RUNNING


def test_a_form_in_a_subagent_is_another_one(talk: Any) -> None:
    """The same server asks in two threads."""
    talk.prompt()
    talk.send("Elicitation", mcp_server_name="one")
    talk.send("Elicitation", mcp_server_name="one", agent_id="g")
    assert talk.send("ElicitationResult", mcp_server_name="one", agent_id="g") == WAITING
    assert talk.send("ElicitationResult", mcp_server_name="one") == RUNNING


def test_an_address_is_known_by_its_id(talk: Any) -> None:
    """In this mode there is an id, and the server does not matter."""
    talk.prompt()
    talk.send("Elicitation", mcp_server_name="one", mode="url", elicitation_id="e1")
    talk.send("Elicitation", mcp_server_name="one", mode="url", elicitation_id="e2")
    assert talk.send("ElicitationResult", mcp_server_name="one", elicitation_id="e1") == WAITING
    assert talk.send("ElicitationResult", mcp_server_name="one", elicitation_id="e2") == RUNNING


def test_an_elicitation_of_nobody_is_released_by_any_result(talk: Any) -> None:
    """Without an id and a server it is anonymous."""
    talk.prompt()
    assert talk.send("Elicitation") == WAITING
    assert talk.send("ElicitationResult", mcp_server_name="one") == RUNNING


def test_the_servers_own_tool_result_releases_its_form(talk: Any) -> None:
    """The call that asked is over; one of another server, or one beside it, is not enough."""
    one, two = {"mcp_server": {"name": "one"}}, {"mcp_server": {"name": "two"}}
    talk.prompt()
    talk.pre("t1", "mcp__one__ask", **one)
    talk.pre("t2", "mcp__one__ping", **one)
    talk.send("Elicitation", mcp_server_name="one")
    assert talk.post("t3", "mcp__two__ping", **two) == "-"
    assert talk.post("t2", "mcp__one__ping", **one) == "-"
    assert talk.post("t1", "mcp__one__ask", **one) == RUNNING


# Bounds


def test_many_open_calls_lose_their_oldest(talk: Any) -> None:
    """A session that never ends a call stays small, and its newest calls are still paired."""
    talk.prompt()
    for number in range(300):
        talk.pre(f"toolu_{number:058d}", "t" * 64, agent="a" * 64, tool_input={"n": number})
    assert talk.permission("t" * 64, agent="a" * 64, tool_input={"n": 299}) == WAITING
    assert talk.post(f"toolu_{299:058d}", "t" * 64, agent="a" * 64) == RUNNING
    assert len(talk.state["open"]) < 128


def test_many_waits_lose_their_oldest(talk: Any) -> None:
    """Blockers are bounded too."""
    talk.prompt()
    for number in range(300):
        talk.permission(agent="g", tool_use_id=f"t{number}")
    assert len(talk.state["blockers"]) == 64


def test_contents_are_never_kept(talk: Any) -> None:
    """Of inputs and prompts only digests enter the state, however large they are."""
    talk.prompt("secret words in /b/c.md")
    talk.pre("t1", "Write", tool_input={"file_path": "/b/c.md", "content": "secret words" * 10_000})
    assert "secret" not in str(talk.state)
    assert len(str(talk.state)) < 500


def test_a_strange_id_is_still_an_identity(talk: Any) -> None:
    """An id of any length and alphabet pairs and releases."""
    strange = "é" * 10_000
    talk.prompt()
    talk.pre(strange, agent=strange)
    assert talk.permission(agent=strange) == WAITING
    assert talk.post("t2") == "-"
    assert talk.post(strange, agent=strange) == RUNNING


# What each event does to the phase, and what is told although it does not change


def test_every_main_event_of_a_turn_makes_a_settled_session_run(talk: Any) -> None:
    """Dialogs of the main thread are part of a turn, so behind them the session runs."""
    dialogs = {
        "PermissionRequest": {"tool_name": "Bash"},
        "PermissionDenied": {"tool_name": "Bash"},
        "Elicitation": {"mcp_server_name": "one"},
        "ElicitationResult": {"mcp_server_name": "one"},
    }
    for name, fields in dialogs.items():
        talk.prompt()
        talk.stop()
        talk.send(name, **fields)
        assert talk.state["phase"] == RUNNING


def test_dialogs_and_their_ends_are_told_each_time(talk: Any) -> None:
    """Suppressing what is equal is the ledger's work."""
    assert [talk.prompt(), talk.prompt()] == [RUNNING, RUNNING]
    assert [talk.denied("a"), talk.denied("b")] == [RUNNING, RUNNING]
    assert talk.send("ElicitationResult", mcp_server_name="one") == RUNNING
    assert [talk.permission(tool_input=TEST), talk.permission(tool_input=TEST)] == [WAITING, WAITING]
    assert talk.pre("q", "AskUserQuestion") == WAITING
    assert [talk.stop(), talk.stop(), talk.send("StopFailure")] == [REVIEW, REVIEW, REVIEW]
    assert [talk.start(), talk.start()] == ["idle", "idle"]


def test_an_anonymous_permission_beside_one_of_its_thread_adds_nothing(talk: Any) -> None:
    """It is most likely the same dialog; one of another thread is another dialog."""
    talk.prompt()
    talk.permission(tool_use_id="a")
    talk.permission()
    assert talk.post("a") == RUNNING
    talk.permission(tool_use_id="b")
    talk.permission(agent="g")
    assert talk.post("b") == "-"
    assert talk.post("c", agent="g") == RUNNING


def test_an_anonymous_permission_beside_a_form_is_another_wait(talk: Any) -> None:
    """Kinds do not stand for each other."""
    talk.prompt()
    talk.send("Elicitation", mcp_server_name="one")
    talk.permission()
    assert talk.send("ElicitationResult", mcp_server_name="one") == WAITING
    assert talk.post("a") == RUNNING


def test_a_permission_beside_a_notice_is_the_noticed_dialog(talk: Any) -> None:
    """The notice came first because its request was late: still one wait, ended by one result."""
    talk.prompt()
    talk.notify("permission_prompt")
    talk.permission(agent="g")
    assert talk.post("a") == RUNNING


def test_an_overtaken_request_is_used_up(talk: Any) -> None:
    """One result overtakes one request: a second one of the same work is a new dialog."""
    talk.prompt()
    talk.pre("t1")
    talk.post("t1")
    assert [talk.permission(), talk.permission()] == ["-", WAITING]


def test_an_overtaken_request_is_not_expected_behind_the_next_prompt(talk: Any) -> None:
    """It would be late by a whole turn; more likely a beginning was missed."""
    talk.prompt()
    talk.pre("t1")
    talk.post("t1")
    talk.prompt()
    assert talk.permission() == WAITING


def test_a_call_id_that_begins_again_is_open_again(talk: Any) -> None:
    """Its earlier end does not count for its new request."""
    talk.prompt()
    talk.pre("t1")
    talk.post("t1")
    talk.pre("t1")
    assert talk.permission(tool_use_id="t1") == WAITING


def test_a_denied_call_is_over(talk: Any) -> None:
    """No later request is taken for it."""
    talk.prompt()
    talk.pre("t1")
    talk.permission()
    talk.denied("t1")
    assert talk.permission() == WAITING
    assert talk.post("t2") == RUNNING


def test_a_stop_ends_the_main_threads_calls_but_not_a_subagents(talk: Any) -> None:
    """A request behind it pairs with the subagent's call only."""
    talk.prompt()
    talk.pre("t1")
    talk.pre("t2", agent="g")
    talk.pre("t3", agent="h")
    talk.stop(agent_task("g"))
    assert [row[0] for row in talk.state["open"]] == ["t2"]
    talk.agent_stop("g")
    assert "open" not in talk.state


def test_a_wait_of_nobody_ends_with_a_stop_that_says_nothing_of_subagents(talk: Any) -> None:
    """It came from a notice, so it is taken for the main thread's."""
    talk.prompt()
    talk.notify("permission_prompt")
    assert talk.send("Stop") == REVIEW


def test_an_ended_subagent_does_not_keep_a_failed_session_running(talk: Any) -> None:
    """It was the last one in the background."""
    talk.prompt()
    talk.stop(agent_task("g"), agent_task("h"))
    talk.agent_stop("g")
    assert talk.send("StopFailure") == RUNNING
    talk.agent_stop("h")
    assert talk.send("StopFailure") == REVIEW


def test_a_subagents_event_does_not_change_the_turn(talk: Any) -> None:
    """It still carries the id of the turn that started it."""
    talk.prompt(prompt_id="p1")
    talk.stop(agent_task("g"), prompt_id="p1")
    talk.prompt(prompt_id="p2")
    talk.permission(prompt_id="p2")
    assert talk.pre("t1", agent="g", prompt_id="p1") == "-"
    assert talk.start("compact") == WAITING


def test_another_call_at_the_server_in_another_thread_does_not_hold_a_form(talk: Any) -> None:
    """Only calls of the same thread can be the one that asked."""
    one = {"mcp_server": {"name": "one"}}
    talk.prompt()
    talk.pre("t1", "mcp__one__ask", **one)
    talk.pre("t2", "mcp__one__ask", agent="g", **one)
    talk.pre("t3", "Bash")
    talk.send("Elicitation", mcp_server_name="one")
    assert talk.post("t1", "mcp__one__ask", **one) == RUNNING
