"""Fields of a payload: what counts, what is missing, and which cards are named."""

from typing import Any, Dict

import pytest

from adapters.claude import payload


@pytest.mark.parametrize(
    ("prompt", "cards"),
    [
        ("work on /b/c.md please", ("/b/c.md",)),
        ("use /tmp/x and /b/c.md", ("/tmp/x and /b/c.md", "/b/c.md")),
        ("/card /b/c.md", ("/card /b/c.md", "/b/c.md")),
        ('<pasted_content id="1">see /b/c.md</pasted_content>', ("/b/c.md",)),
        ("see @../board/c.md and @/b/c.md", ("/b/c.md",)),
        ("see @board/c.md", ()),
        ("/b/c.md and /b/c.md", ("/b/c.md",)),
        ("<task-notification>/b/c.md</task-notification>", ()),
        ("\n  <task-notification>/b/c.md", ()),
        ("about <task-notification> in /b/c.md", ("/b/c.md",)),
        ("", ()),
        (None, ()),
        (["/b/c.md"], ()),
    ],
)
def test_cards_of_a_prompt(prompt: Any, cards: Any) -> None:
    """A person's text is searched, typed or pasted; the program's own is not."""
    assert payload.cards_of_prompt({"prompt": prompt}) == cards


def test_a_prompt_that_says_it_is_the_systems_is() -> None:
    """The declared source is believed, should it ever come."""
    assert payload.cards_of_prompt({"prompt": "/b/c.md", "source": "system"}) == ()
    assert payload.cards_of_prompt({"prompt": "/b/c.md", "source": "user"}) == ("/b/c.md",)


@pytest.mark.parametrize("tool", ["Write", "Edit", "MultiEdit"])
def test_a_changed_file_is_a_card(tool: str) -> None:
    """Absolute as it is, relative to the session's folder, in any case of the extension."""
    assert edit(tool, "/b/../b/c.md") == ("/b/../b/c.md",)
    assert edit(tool, "notes/c.md", cwd="/w") == ("/w/notes/c.md",)
    assert edit(tool, "/b/C.MD") == ("/b/C.MD",)
    assert edit(tool, "c.md") == ()
    assert edit(tool, "/b/c.txt") == ()


@pytest.mark.parametrize(
    "tool", ["Read", "Bash", "NotebookEdit", "write", "edit", "mcp__fs__Write", "", None, ["Write"]]
)
def test_other_tools_change_no_card(tool: Any) -> None:
    """Reading, running, and tools of another name do not associate."""
    assert edit(tool, "/b/c.md") == ()
    assert payload.card_of_edit({"tool_name": tool, "tool_input": {"notebook_path": "/b/c.md"}}) == ()


@pytest.mark.parametrize(
    "path", [None, 5, ["/b/c.md"], "", "/" + "x" * 5000 + ".md", "/\ud800.md", "/a\0.md"]
)
def test_what_is_no_path_is_no_card(path: Any) -> None:
    """Wrong types, and paths that no file can have."""
    assert edit("Write", path) == ()


@pytest.mark.parametrize("given", [None, 5, "x", ["file_path"], {}])
def test_an_input_of_another_form_names_no_card(given: Any) -> None:
    """The input is foreign as well."""
    assert payload.card_of_edit({"tool_name": "Write", "tool_input": given, "cwd": "/w"}) == ()


@pytest.mark.parametrize("cwd", [None, 5, ["/w"], "", "w"])
def test_a_relative_path_needs_a_folder(cwd: Any) -> None:
    """Without an absolute folder there is no card."""
    call: Dict[str, Any] = {"tool_name": "Write", "tool_input": {"file_path": "c.md"}, "cwd": cwd}
    assert payload.card_of_edit(call) == ()


def test_the_first_usable_id_is_the_identity() -> None:
    """The tool call's, the elicitation's, the request's; an agent's id names a thread."""
    assert payload.identity_of({"tool_use_id": "t", "elicitation_id": "e"}) == "t"
    assert payload.identity_of({"tool_use_id": "", "elicitation_id": "e", "request_id": "r"}) == "e"
    assert payload.identity_of({"tool_use_id": 5, "request_id": "r"}) == "r"
    assert payload.identity_of({"agent_id": "g"}) == ""
    assert payload.thread_of({"agent_id": "g"}) == "g"
    assert payload.thread_of({"agent_type": "helper"}) == ""


def edit(tool: Any, path: Any, **fields: Any) -> Any:
    """The card of one finished edit."""
    return payload.card_of_edit({"tool_name": tool, "tool_input": {"file_path": path}, **fields})


def test_paths_and_ids_are_bounded() -> None:
    """What could not be kept counts as missing."""
    assert payload.path_or_none("") is None
    assert payload.session_of({"session_id": "s" * 512}) == "s" * 512
    assert payload.session_of({"session_id": "s" * 513}) == ""
