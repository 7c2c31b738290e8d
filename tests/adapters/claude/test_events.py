"""The table of events against the facts about the three versions measured."""

from adapters.claude import events, hooks, notices

NEW_IN_220 = {"DirectoryAdded"}
NEW_IN_332 = {"PreModelSwitch", "PostModelSwitch", "PreSkillShellCommand"}


def test_the_inventory_is_complete_and_has_no_event_twice() -> None:
    """The current version has 34 events, and each has exactly one policy."""
    assert len(events.EVENTS) == 34
    assert len(set(events.EVENTS)) == 34


def test_versions_know_as_many_events_as_were_measured() -> None:
    """2.1.197 knows 30 events, 2.1.220 one more, 2.1.332 all."""
    since = {policy.name: policy.since for policy in events.POLICIES}
    assert {name for name in since if since[name] == "2.1.220"} == NEW_IN_220
    assert {name for name in since if since[name] == "2.1.332"} == NEW_IN_332
    assert sum(version == events.OLDEST_VERSION for version in since.values()) == 30


def test_nothing_is_subscribed_that_the_oldest_version_does_not_know() -> None:
    """One unknown name would make old versions drop the whole hooks file."""
    assert all(policy.since == events.OLDEST_VERSION for policy in events.SUBSCRIBED)


def test_lifecycle_events_stand_in_the_order_of_the_hooks_file() -> None:
    """The subscriptions are these, in this order."""
    assert [policy.name for policy in events.SUBSCRIBED] == [
        "SessionStart",
        "UserPromptSubmit",
        "Stop",
        "StopFailure",
        "SessionEnd",
        "PreToolUse",
        "PermissionRequest",
        "PermissionDenied",
        "PostToolUse",
        "PostToolUseFailure",
        "PostToolBatch",
        "SubagentStop",
        "Elicitation",
        "ElicitationResult",
        "Notification",
    ]


def test_events_that_would_disturb_the_user_are_never_subscribed() -> None:
    """Costly, announced, or answering events stay metadata."""
    subscribed = {policy.name for policy in events.SUBSCRIBED}
    assert not subscribed & {"MessageDisplay", "WorktreeCreate", "PreCompact", "PostCompact", "Setup"}


def test_only_the_session_boundaries_are_commands() -> None:
    """SessionStart cannot be http, SessionEnd should not; all else is."""
    commands = [policy.name for policy in events.SUBSCRIBED if policy.transport is events.Transport.COMMAND]
    assert commands == ["SessionStart", "SessionEnd"]
    assert events.Transport.HTTP.value == "http"
    assert events.Transport.COMMAND.value == "command"


def test_only_notifications_have_a_matcher() -> None:
    """The contract's nine types first and in its order, then ours; idle_prompt is none of them."""
    assert [policy.name for policy in events.SUBSCRIBED if policy.matcher is not None] == ["Notification"]
    matcher = next(policy.matcher for policy in events.SUBSCRIBED if policy.name == "Notification")
    assert matcher == (
        "permission_prompt|agent_needs_input|elicitation_dialog|elicitation_url_dialog|"
        "elicitation_complete|elicitation_response|quota_auto_resume_fired|quota_auto_resume_stale|"
        "quota_auto_resume_disabled|worker_permission_prompt|agent_completed"
    )
    assert "idle_prompt" not in events.NOTIFICATION_TYPES


def test_every_lifecycle_event_has_an_effect_and_no_other_has() -> None:
    """Subscriptions and translation cannot drift apart."""
    assert set(hooks.EFFECTS) == {policy.name for policy in events.SUBSCRIBED}


def test_every_subscribed_notification_has_an_effect_and_no_other_has() -> None:
    """The matcher and the translation of notifications cannot drift apart."""
    assert set(notices.NOTIFICATION_EFFECTS) == set(events.NOTIFICATION_TYPES)
