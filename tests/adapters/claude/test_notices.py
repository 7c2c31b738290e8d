"""Notifications: a fallback that must not undo what is known better."""

from typing import Any

import pytest

RUNNING, WAITING, REVIEW = "running", "waiting_for_input", "ready_for_review"
DIALOGS = ["permission_prompt", "worker_permission_prompt", "elicitation_dialog", "elicitation_url_dialog"]


@pytest.mark.parametrize("kind", DIALOGS)
def test_a_dialog_of_an_unseen_session_waits(talk: Any, kind: str) -> None:
    """The companion started while it was open: nothing better is known."""
    assert talk.notify(kind) == WAITING


@pytest.mark.parametrize("kind", DIALOGS)
def test_a_dialog_of_a_running_session_of_which_nothing_is_known_waits(talk: Any, kind: str) -> None:
    """The event of the dialog was missed."""
    talk.prompt()
    assert talk.notify(kind) == WAITING


@pytest.mark.parametrize("kind", DIALOGS)
def test_a_dialog_after_the_stop_came_too_late(talk: Any, kind: str) -> None:
    """The session has moved on, so somebody answered."""
    talk.prompt()
    talk.stop()
    assert talk.notify(kind) == "-"
    assert talk.start("compact") == REVIEW


def test_a_dialog_during_a_pause_waits(talk: Any) -> None:
    """The main thread has stopped, but a subagent may have asked."""
    talk.prompt()
    talk.stop({"id": "g", "type": "subagent", "status": "running"})
    assert talk.notify("permission_prompt") == WAITING
    assert talk.post("t1", agent="g") == RUNNING


def test_a_permission_that_was_answered_is_not_asked_again(talk: Any) -> None:
    """No call is open and a permission was released since the prompt: the notice is late."""
    talk.prompt()
    talk.pre("t1")
    talk.permission()
    talk.post("t1")
    assert talk.notify("permission_prompt") == "-"
    # It says nothing about another kind, nor about the next turn.
    assert talk.notify("elicitation_dialog") == WAITING
    talk.prompt()
    assert talk.notify("permission_prompt") == WAITING


def test_a_question_that_was_answered_is_not_asked_again(talk: Any) -> None:
    """The notice of a question calls it a permission."""
    talk.prompt()
    talk.pre("q", "AskUserQuestion")
    talk.post("q", "AskUserQuestion")
    assert talk.notify("permission_prompt") == "-"


def test_a_dialog_while_a_call_is_open_waits(talk: Any) -> None:
    """One permission was answered, but the open call may have asked for the next one."""
    talk.prompt()
    talk.pre("t1")
    talk.permission()
    talk.post("t1")
    talk.pre("t2")
    assert talk.notify("permission_prompt") == WAITING
    assert talk.post("t2") == RUNNING


def test_a_known_dialog_is_not_counted_twice(talk: Any) -> None:
    """The notice of a question, a permission, or a form adds nothing."""
    talk.prompt()
    talk.pre("q", "AskUserQuestion")
    assert [talk.notify("permission_prompt"), talk.post("q", "AskUserQuestion")] == [WAITING, RUNNING]
    talk.send("Elicitation", mcp_server_name="one")
    assert talk.notify("elicitation_dialog") == WAITING
    assert talk.send("ElicitationResult", mcp_server_name="one") == RUNNING


def test_a_notice_with_the_id_of_an_ended_call_is_late(talk: Any) -> None:
    """Should a version send an id, it is believed."""
    talk.prompt()
    talk.pre("t1")
    talk.post("t1")
    assert talk.notify("permission_prompt", tool_use_id="t1") == "-"
    assert talk.notify("permission_prompt", tool_use_id="t2") == WAITING
    assert [talk.post("t3"), talk.post("t2")] == ["-", RUNNING]


@pytest.mark.parametrize("kind", ["permission_prompt", "elicitation_dialog"])
def test_a_wait_from_a_notice_ends_with_the_turn(talk: Any, kind: str) -> None:
    """Nobody knows whose it is, so the main thread's stop and any prompt clear it."""
    talk.prompt()
    assert [talk.notify(kind), talk.machine_prompt()] == [WAITING, RUNNING]
    assert [talk.notify(kind), talk.stop()] == [WAITING, REVIEW]


@pytest.mark.parametrize("kind", ["elicitation_complete", "elicitation_response"])
def test_an_answered_form_is_released(talk: Any, kind: str) -> None:
    """The anonymous one, and the one of its id; after the stop it means nothing."""
    talk.prompt()
    talk.notify("elicitation_dialog")
    assert talk.notify(kind) == RUNNING
    talk.send("Elicitation", elicitation_id="e")
    assert talk.notify(kind) == WAITING
    assert talk.notify(kind, elicitation_id="e") == RUNNING
    talk.stop()
    assert talk.notify(kind) == "-"


def test_another_agent_that_needs_input(talk: Any) -> None:
    """It blocks whatever the phase is, until it has completed."""
    talk.prompt()
    talk.stop()
    assert talk.notify("agent_needs_input") == WAITING
    assert talk.notify("agent_completed") == REVIEW
    assert talk.notify("agent_completed") == "-"


def test_other_agents_are_told_apart_by_their_ids(talk: Any) -> None:
    """Each completion releases its own."""
    talk.prompt()
    talk.notify("agent_needs_input", agent_id="g")
    talk.notify("agent_needs_input", agent_id="h")
    assert talk.notify("agent_completed", agent_id="g") == "-"
    assert talk.notify("agent_completed", agent_id="h") == RUNNING


def test_a_completed_agent_of_an_unseen_session_leaves_no_trace(talk: Any) -> None:
    """It says nothing about the status of the session itself."""
    assert talk.notify("agent_completed") == "-"
    assert talk.state is None


def test_quotas(talk: Any) -> None:
    """Stale waits for a person, fired runs again, disabled is settled."""
    talk.prompt()
    assert talk.notify("quota_auto_resume_stale") == WAITING
    assert talk.post("t1") == "-"
    assert talk.notify("quota_auto_resume_fired") == RUNNING
    assert talk.notify("quota_auto_resume_disabled") == REVIEW
    assert talk.notify("quota_auto_resume_stale") == WAITING


@pytest.mark.parametrize(
    "kind", ["idle_prompt", "auth_success", "push_notification", "later", "", None, 7, []]
)
def test_other_notifications_mean_nothing(talk: Any, kind: Any) -> None:
    """They are known as an event, and ignored."""
    talk.prompt()
    state = talk.state
    assert talk.notify(kind) == "-"
    assert talk.state == state


def test_notices_are_told_each_time(talk: Any) -> None:
    """Suppressing what is equal is the ledger's work."""
    talk.prompt()
    assert [talk.notify("quota_auto_resume_fired"), talk.notify("elicitation_response")] == [RUNNING, RUNNING]
    assert [talk.notify("agent_needs_input"), talk.notify("quota_auto_resume_stale")] == [WAITING, WAITING]
    assert [talk.notify("elicitation_dialog"), talk.notify("permission_prompt")] == [WAITING, WAITING]
    assert [talk.stop(), talk.notify("quota_auto_resume_disabled")] == [REVIEW, REVIEW]


def test_a_dialog_is_part_of_a_turn(talk: Any) -> None:
    """Behind it the session runs, whatever it did before."""
    talk.start()
    assert talk.notify("permission_prompt") == WAITING
    assert talk.state["phase"] == RUNNING


def test_a_notice_with_an_id_beside_another_dialog_is_another_wait(talk: Any) -> None:
    """Only a notice without id is taken for what is known."""
    talk.prompt()
    talk.permission(tool_use_id="t1")
    assert talk.notify("permission_prompt", tool_use_id="t2") == WAITING
    assert talk.post("t1") == "-"
    assert talk.post("t2") == RUNNING
