"""What one entry says about cards: the rules, each on its own."""

from typing import Dict, List, Optional

import pytest

from adapters.claude.entries import EntryCards

CARD = "/home/dev/board/card.md"


def prompt(text: object = f"see {CARD}", **more: object) -> Dict[str, object]:
    return {"type": "user", "message": {"role": "user", "content": text}, **more}


def call(
    path: object = CARD, name: object = "Write", call_id: object = "c1", **more: object
) -> Dict[str, object]:
    block = {"type": "tool_use", "id": call_id, "name": name, "input": {"file_path": path}}
    return {"type": "assistant", "message": {"role": "assistant", "content": [block]}, **more}


def result(call_id: object = "c1", **more: object) -> Dict[str, object]:
    block = {"type": "tool_result", "tool_use_id": call_id, **more}
    return {"type": "user", "message": {"role": "user", "content": [block]}, "toolUseResult": "x"}


def found(*entries: Dict[str, object], cwd: Optional[str] = None, with_text: bool = True) -> List[str]:
    cards = EntryCards(cwd)
    for entry in entries:
        cards.take(entry, with_text)
    return list(cards.found)


@pytest.mark.parametrize(
    "entry",
    [
        prompt(),
        prompt([{"type": "text", "text": f"see {CARD}"}]),
        prompt([{"type": "tool_result", "tool_use_id": "c9"}, {"type": "text", "text": f"yes, and {CARD}"}]),
        prompt(origin={"kind": "human"}, promptSource="typed"),
        prompt(origin={"kind": "human"}, promptSource="queued"),
        prompt(promptSource="sdk"),
        prompt(isMeta=False, isSidechain=False, isCompactSummary=None, origin=None),
        prompt(f"<command-message>x</command-message>\n<command-args>{CARD}</command-args>"),
        {"message": {"role": "user", "content": f"see {CARD}"}},
    ],
)
def test_text_of_a_person_counts(entry: Dict[str, object]) -> None:
    """Typed, queued, given on the command line, as text or blocks, behind a slash command."""
    assert CARD in found(entry)
    assert found(entry, with_text=False) == []


@pytest.mark.parametrize(
    "entry",
    [
        prompt(isMeta=True),
        prompt(isSidechain=True),
        prompt(isCompactSummary=True),
        prompt(origin={"kind": "task-notification"}),
        prompt(promptSource="system"),
        prompt(f"<command-name>/x</command-name><command-args>{CARD}</command-args>"),
        prompt(f"<command-message>x {CARD}</command-message>\n<command-args></command-args>"),
        prompt(f"<local-command-stdout>{CARD}"),
        prompt(f"<local-command-caveat>{CARD}"),
        prompt(f"<bash-input>cat {CARD}"),
        prompt(f"<bash-stdout>{CARD}"),
        prompt(f"<task-notification>{CARD}"),
        prompt([{"type": "text", "text": f"[Request interrupted by user] {CARD}"}]),
        {"type": "user", "message": {"role": "assistant", "content": CARD}},
        {"type": "assistant", "message": {"role": "user", "content": CARD}},
        {"type": "api-request-blob", "message": {"role": "user", "content": CARD}},
        {"type": "queue-operation", "content": CARD},
        prompt(attachment={}),
    ],
)
def test_text_of_the_machine_does_not_count(entry: Dict[str, object]) -> None:
    """Reminders, summaries, notices, outputs, and records of requests."""
    assert found(entry) == []


@pytest.mark.parametrize("name", ["Write", "Edit", "MultiEdit"])
def test_successful_edit_counts_when_its_result_comes(name: str) -> None:
    """Not at the call: it may be refused."""
    assert found(call(name=name)) == []
    assert found(call(name=name), result()) == [CARD]


@pytest.mark.parametrize("name", ["Read", "Bash", "NotebookEdit", "write", "edit", None, 5])
def test_other_tools_never_count(name: object) -> None:
    """Names are compared by case."""
    assert found(call(name=name), result()) == []


def test_failed_edit_does_not_count_until_one_succeeds() -> None:
    """A result with ``is_error`` true is none; one of the same call without it is."""
    assert found(call(), result(is_error=True)) == []
    assert found(call(), result(is_error=True), result()) == [CARD]


def test_edits_in_a_side_chain_count() -> None:
    """A sub-agent's work is the session's; what it was told is not the user's."""
    assert found(call(isSidechain=True), result()) == [CARD]


def test_order_of_discovery_without_duplicates() -> None:
    """Edits count at their result, texts at once."""
    other = "/home/dev/board/other.md"
    assert found(call(), prompt(f"see {other}"), result(), prompt()) == [other, CARD]


def test_entry_with_a_result_makes_no_calls() -> None:
    """So that what such an entry repeats of a file need not be searched."""
    assert found({**call(), "toolUseResult": {}}, result()) == []


def test_impossible_path_is_left_out() -> None:
    """It could name no file."""
    assert found(call("/home/dev/board/\0.md"), result()) == []
