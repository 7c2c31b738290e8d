"""What of a text the user has written."""

from adapters.codex.usertext import is_injected, typed


def test_what_an_editor_tells_is_not_typed() -> None:
    """Its open files stand in front of the request."""
    text = "# Context from my IDE setup:\n\n- /b/open.md\n\n## My request for Codex:\nsee /b/a.md\n"
    assert typed(text) == "\nsee /b/a.md\n"
    assert typed("see /b/a.md") == "see /b/a.md"
    assert typed(None) == typed(5) == typed("# Context from my IDE setup:\n/b/a.md") == ""


def test_what_codex_puts_in() -> None:
    """Under the user's role, in the model's input."""
    for text in ("<environment_context>", "\n<user_instructions>", "# AGENTS.md instructions for /p"):
        assert is_injected(text)
    assert not is_injected("see </b/a.md>")
