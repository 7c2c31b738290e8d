"""Files that a patch changes."""

from typing import Optional, Tuple

import pytest

from adapters.codex.patches import cards_in, cards_of, joined

PATCH = """*** Begin Patch
*** Add File: /b/new.md
+*** Add File: /b/content.md
*** Update File: sub/../old name.md\r
*** Move to: /b/moved.MD
@@
-*** Delete File: x.md
 *** Update File: /b/context.md
*** Update File: /b/new.md
*** Update File: code.py
*** Delete File: /b/gone.md
*** End Patch
"""


def test_added_updated_and_moved_files() -> None:
    """By their lines alone, relative ones below the folder; a deleted file is no card any more."""
    assert cards_in(PATCH, "/p") == ("/b/new.md", "/p/old name.md", "/b/moved.MD")
    assert cards_in(PATCH, None) == ("/b/new.md", "/b/moved.MD")


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("apply_patch <<'EOF'\n{}\nEOF\n", ("/p/a.md",)),
        ("cd sub && apply_patch <<'EOF'\n{}\nEOF\n", ("/p/sub/a.md",)),
        ("cd '/o t' && applypatch <<EOF\n{}\nEOF\n", ("/o t/a.md",)),
        ("*** Add File: /b/no-patch.md", ()),
        ("", ()),
        (5, ()),
        (None, ()),
    ],
)
def test_patches_in_shell_commands(command: object, found: Tuple[str, ...]) -> None:
    """As here-documents, and in the folder to which the command goes."""
    patch = "*** Begin Patch\n*** Update File: a.md\n*** End Patch"
    text = command.format(patch) if isinstance(command, str) else command
    assert cards_in(text, "/p") == found


def test_what_can_be_no_card_is_left_out() -> None:
    """Of any type."""
    assert cards_of(["/b/a.md", 5, None, "/b/\ud800.md", "a.md", "/b/a.md", "/b/a.txt"], None) == ("/b/a.md",)


@pytest.mark.parametrize(
    ("folder", "cwd", "found"),
    [("/x", "/p", "/x"), ("x", "/p", "/p/x"), ("x", None, None), ("", "/p", "/p"), (5, "/p", "/p")],
)
def test_folders_of_calls(folder: object, cwd: Optional[str], found: Optional[str]) -> None:
    """Relative to the session's."""
    assert joined(folder, cwd) == found
