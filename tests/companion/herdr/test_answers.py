"""What herdr answers: foreign JSON."""

import json
from typing import Dict, List, Optional

import pytest

from adapters.registry import ADAPTERS
from companion.core.errors import ProgramFailed
from companion.herdr import answers
from companion.herdr.answers import entries, label_table, session_of, session_value

Entries = List[Dict[str, object]]


def agent(session: object = "s1", tab: object = "t1", workspace: object = "w1") -> Dict[str, object]:
    """One agent as herdr tells it."""
    return {"agent_session": {"value": session}, "pane_id": "p1", "tab_id": tab, "workspace_id": workspace}


TABS: Entries = [{"tab_id": "t1", "label": "Basket"}, {"tab_id": "t2", "label": "Checkout"}]
WORKSPACES: Entries = [{"workspace_id": "w1", "label": "Shop"}]


def test_a_list_is_read_from_the_result() -> None:
    """In order; what is no object is left out."""
    text = json.dumps({"id": "x", "result": {"tabs": [{"n": "1"}, None, 5, "x", [], {"n": "2"}]}})
    assert entries(text, "tabs") == [{"n": "1"}, {"n": "2"}]
    assert entries('{"result":{"agents":[]}}', "agents") == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "none",
        "{",
        "[]",
        "null",
        "{}",
        '{"result":[]}',
        '{"result":{}}',
        '{"result":{"agents":{}}}',
        '{"result":{"tabs":[]}}',
        '{"result":{"agents":null}}',
        "[" * 100_000,
    ],
)
def test_an_answer_without_the_list_is_a_failure(text: str) -> None:
    """Whatever else stands in it."""
    with pytest.raises(ProgramFailed, match="herdr"):
        entries(text, "agents")


def test_huge_numbers_cost_nothing() -> None:
    """They are no ids; Python would take long to read one as an integer, or refuse it."""
    text = '{"result":{"agents":[{"pane_id":' + "9" * 1_000_000 + "}]}}"
    assert len(entries(text, "agents")) == 1


@pytest.mark.parametrize(
    ("harness", "session_file", "value"),
    [
        ("pi", "/s/1.jsonl", "/s/1.jsonl"),
        ("pi", None, None),
        ("pi", "", None),
        ("claude", "/s/1.jsonl", "s1"),
        ("opencode", None, "s1"),
        ("unknown", None, "s1"),
        ("never-heard-of", "/s/1.jsonl", "s1"),
    ],
)
def test_a_session_is_known_by_its_file_or_by_its_id(
    harness: str, session_file: Optional[str], value: Optional[str]
) -> None:
    """As the agent's adapter says; by its id where there is no adapter."""
    assert session_value(ADAPTERS, harness, "s1", session_file) == value


@pytest.mark.parametrize("session", [None, "s1", 5, [], {}, {"value": None}, {"value": 5}, {"value": ""}])
def test_an_agent_need_not_have_a_session(session: object) -> None:
    """One that has just begun, or one of another kind."""
    assert session_of({"agent_session": session}) == ""
    assert session_of({}) == ""


def test_a_session_has_both_labels_or_none() -> None:
    """An empty one, a missing one and one of no text do not count; neither do ids of no text."""
    assert label_table([agent(), agent("s2", "t2")], TABS, WORKSPACES) == {
        "s1": ("Shop", "Basket"),
        "s2": ("Shop", "Checkout"),
    }
    for wrong in (
        agent(tab="t9"),
        agent(workspace="w9"),
        agent(session=""),
        agent(tab=["t1"]),
        agent(workspace=None),
        agent(tab=1.0),
        {},
    ):
        assert label_table([wrong], TABS, WORKSPACES) == {}
    for label in ("", None, 5, ["Basket"]):
        assert label_table([agent()], [{"tab_id": "t1", "label": label}], WORKSPACES) == {}
        assert label_table([agent()], TABS, [{"workspace_id": "w1", "label": label}]) == {}
    assert label_table([agent(tab="")], [{"tab_id": "", "label": "x"}], WORKSPACES) == {}


def test_of_two_agents_with_one_session_the_first_with_labels_counts() -> None:
    """Which is the one that would be focused."""
    assert label_table([agent(tab="t9"), agent(tab="t2"), agent()], TABS, WORKSPACES) == {
        "s1": ("Shop", "Checkout")
    }


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of sessions, and the length of a label."""
    monkeypatch.setattr(answers, "MOST_SESSIONS", 3)
    many = [agent(f"s{number}") for number in range(5)]
    table = label_table(many, [{"tab_id": "t1", "label": "x" * 5_000}], WORKSPACES)
    assert list(table) == ["s0", "s1", "s2"]
    assert table["s0"] == ("Shop", "x" * answers.LABEL_CHARACTERS)
