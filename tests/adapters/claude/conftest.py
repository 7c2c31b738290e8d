"""A Claude Code session to talk to: one method per event, each answers with the published status."""

import copy
import json
from typing import Dict, List, Optional

import pytest

from adapters.claude import hooks
from adapters.contract import HookEvent, SessionState, Translation

NOT_PUBLISHED = "-"


class TalkingSession:
    """Feeds events to the adapter and keeps its state, as JSON would, in between."""

    def __init__(self) -> None:
        self.state: Optional[SessionState] = None
        self.events: List[HookEvent] = []
        """Everything that was published."""

    def send(self, name: str, **fields: object) -> str:
        """One event; the status that was published, or ``-``."""
        payload = {"hook_event_name": name, "session_id": "s", **fields}
        return self.receive(payload)

    def receive(self, payload: Dict[str, object]) -> str:
        """One payload as it is; the status that was published, or ``-``."""
        translation = self.translate(payload)
        if translation.event is None:
            return NOT_PUBLISHED
        self.events.append(translation.event)
        return translation.event.status.value

    def translate(self, payload: Dict[str, object]) -> Translation:
        """One payload as it is, with all that it meant; checks that nothing handed in was changed."""
        before = copy.deepcopy((payload, self.state))
        translation = hooks.translate(payload, self.state)
        assert (payload, self.state) == before
        if translation.state is not None:
            text = json.dumps(translation.state)
            assert len(text) < 64 * 1024
            self.state = json.loads(text)
            assert self.state == translation.state
        return translation

    @property
    def cards(self) -> List[str]:
        """Every card path published so far, in order."""
        return [path for event in self.events for path in event.card_paths]

    def start(self, source: str = "startup", **fields: object) -> str:
        return self.send("SessionStart", source=source, **fields)

    def prompt(self, text: str = "go on", **fields: object) -> str:
        return self.send("UserPromptSubmit", prompt=text, **fields)

    def machine_prompt(self, **fields: object) -> str:
        return self.prompt("<task-notification>\nsee /b/machine.md\n</task-notification>", **fields)

    def pre(self, identity: str, tool: str = "Bash", agent: str = "", **fields: object) -> str:
        return self._tool("PreToolUse", tool, agent, tool_use_id=identity, **fields)

    def post(self, identity: str, tool: str = "Bash", agent: str = "", **fields: object) -> str:
        return self._tool("PostToolUse", tool, agent, tool_use_id=identity, **fields)

    def failed(self, identity: str, tool: str = "Bash", agent: str = "", **fields: object) -> str:
        return self._tool("PostToolUseFailure", tool, agent, tool_use_id=identity, **fields)

    def permission(self, tool: str = "Bash", agent: str = "", **fields: object) -> str:
        return self._tool("PermissionRequest", tool, agent, **fields)

    def denied(self, identity: str, tool: str = "Bash", agent: str = "", **fields: object) -> str:
        return self._tool("PermissionDenied", tool, agent, tool_use_id=identity, **fields)

    def batch(self, *identities: str, agent: str = "", **fields: object) -> str:
        calls = [{"tool_name": "Bash", "tool_input": {}, "tool_use_id": identity} for identity in identities]
        return self.send("PostToolBatch", tool_calls=calls, **_of(agent), **fields)

    def notify(self, kind: str, **fields: object) -> str:
        return self.send("Notification", notification_type=kind, **fields)

    def stop(self, *tasks: Dict[str, str], **fields: object) -> str:
        return self.send("Stop", background_tasks=list(tasks), **fields)

    def agent_stop(self, agent: str, **fields: object) -> str:
        return self.send("SubagentStop", **{"agent_id": agent, "agent_type": "helper", **fields})

    def end(self) -> str:
        return self.send("SessionEnd", reason="other")

    def _tool(self, event: str, tool: str, agent: str, **fields: object) -> str:
        given = {"tool_input": {"command": "make"}, **fields}
        return self.send(event, tool_name=tool, **_of(agent), **given)


def _of(agent: str) -> Dict[str, object]:
    return {"agent_id": agent, "agent_type": "helper"} if agent else {}


@pytest.fixture
def talk() -> TalkingSession:
    """A session of which nothing is known yet."""
    return TalkingSession()
