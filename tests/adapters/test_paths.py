"""The rule for card paths in text and tool calls, row by row, and its cost."""

import json
import re
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters import paths

TABLE: Dict[str, List[Dict[str, Any]]] = json.loads(
    (Path(__file__).parent.parent / "fixtures" / "paths.json").read_text("utf-8")
)
# The rule as one regular expression: short, and quadratic.
NAIVE = re.compile(r"(?<![A-Za-z0-9_.])(?:[A-Za-z]:[\\/]|/)[^\n\r\"'`]+?\.md(?![A-Za-z0-9_])")


@pytest.mark.parametrize("row", TABLE["text"], ids=lambda row: repr(row["text"])[:40])
def test_paths_in_text_follow_the_table(row: Dict[str, Any]) -> None:
    """Each row of the table gives exactly its paths, in order."""
    assert paths.paths_in_text(row["text"]) == row["paths"], row["why"]


@pytest.mark.parametrize("row", TABLE["text"], ids=lambda row: repr(row["text"])[:40])
def test_candidates_follow_the_table(row: Dict[str, Any]) -> None:
    """Each row of the table gives exactly its candidates, the shortest match first."""
    assert list(paths.candidates_in_text(row["text"])) == row["candidates"], row["why"]


@pytest.mark.parametrize("row", TABLE["tool"], ids=lambda row: f"{row['value']!r}-{row['cwd']!r}")
def test_tool_paths_follow_the_table(row: Dict[str, Any]) -> None:
    """Each row of the table gives its path of a tool call, or none."""
    assert paths.tool_path(row["value"], row["cwd"]) == row["path"], row["why"]


@pytest.mark.parametrize("row", TABLE["message"], ids=lambda row: repr(row["content"])[:40])
def test_text_of_a_message_follows_the_table(row: Dict[str, Any]) -> None:
    """A message's text is the string itself or its text blocks, joined by line."""
    assert paths.text_of(row["content"]) == row["text"]


@given(
    st.lists(
        st.sampled_from(["/", ".md", "a", "C:", "\\", "'", "\n", " ", ".", "_", "é", "x.md"]), max_size=40
    )
)
def test_the_search_agrees_with_the_plain_regular_expression(pieces: List[str]) -> None:
    """Whatever the text, the linear search finds what the quadratic expression finds."""
    text = "".join(pieces)
    assert paths.paths_in_text(text) == list(dict.fromkeys(NAIVE.findall(text)))


@given(st.lists(st.sampled_from(["/", ".md", "a", "C:", "'", "\n", " ", "."]), max_size=30))
def test_candidates_hold_every_path_that_can_be_a_card(pieces: List[str]) -> None:
    """Candidates are the found paths that may name a card, and later starts of the same matches."""
    text = "".join(pieces)
    found = paths.paths_in_text(text)
    candidates = paths.candidates_in_text(text)
    assert {path for path in found if path.startswith("/")} <= set(candidates)
    assert all(any(path.endswith(candidate) for path in found) for candidate in candidates)
    assert len(set(candidates)) == len(candidates)


def test_the_starts_nearest_to_the_end_are_tried() -> None:
    """Of very many later starts, those remain that swallow the fewest words."""
    text = "/ " * 500 + "/a/b.md"
    candidates = paths.candidates_in_text(text)
    assert len(candidates) == 1 + paths.MAX_LATER_STARTS
    assert candidates[0] == text
    assert candidates[-1] == "/a/b.md"


def test_a_card_at_the_end_of_a_very_long_match_is_found() -> None:
    """A match longer than any path gives no candidate itself, but its end does."""
    text = "/" + "x " * paths.MAX_PATH_CHARS + " and /a/b.md"
    assert paths.paths_in_text(text) == [text]
    assert paths.candidates_in_text(text) == ("/a/b.md",)


def test_candidates_are_bounded_and_matches_go_first() -> None:
    """A flood of swallowed words uses up the later starts, not the matches themselves."""
    text = "\n".join(f"/p{number} /q /r /s.md" for number in range(3000))
    candidates = paths.candidates_in_text(text)
    assert len(candidates) <= paths.MAX_MATCHES + paths.MAX_EXTRA_CANDIDATES + paths.MAX_LATER_STARTS
    assert "/p2999 /q /r /s.md" in candidates


def test_matches_are_bounded() -> None:
    """Not more candidates come out of a listing than the limit says."""
    text = "\n".join(f"/{number}.md" for number in range(paths.MAX_MATCHES + 500))
    assert len(paths.candidates_in_text(text)) == paths.MAX_MATCHES


def test_candidates_end_with_the_text_that_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind the limit of a text nothing is looked for."""
    monkeypatch.setattr(paths, "MAX_TEXT_CHARS", 12)
    assert paths.candidates_in_text("/a/b.md     /c/d.md") == ("/a/b.md",)


@pytest.mark.parametrize(
    "piece",
    ["/a", "/ ", "/x.md ", "/.md", "x.md ", "/'", "/'.md", "/'/x.md", "C:/", "/a\n", ".md'", "' /a b.md /"],
)
@pytest.mark.parametrize("tail", ["", " /z.md", "'x.md"])
@pytest.mark.parametrize("search", [paths.paths_in_text, paths.candidates_in_text])
def test_the_search_is_linear(search: Callable[[str], object], piece: str, tail: str) -> None:
    """Eight times the text takes about eight times as long, where a quadratic search takes 64 times."""
    size = 40_000 // len(piece)
    small = _cpu_s(search, piece * size + tail)
    large = _cpu_s(search, piece * (size * 8) + tail, limit_s=small * 24)
    assert large <= max(small * 24, 0.02)


@pytest.mark.parametrize("piece", ["/a", "/ ", "/x.md ", "/'.md"])
def test_a_megabyte_of_slashes_ends(piece: str) -> None:
    """A text on which a quadratic search would not end today is done."""
    text = piece * (1_000_000 // len(piece))
    assert len(paths.candidates_in_text(text)) <= 2


def _cpu_s(search: Callable[[str], object], text: str, limit_s: Optional[float] = None) -> float:
    """The least processor time of up to five runs; the first one within ``limit_s`` will do."""
    best = float("inf")
    for _ in range(5):
        begun = time.process_time()
        search(text)
        best = min(best, time.process_time() - begun)
        if limit_s is not None and best <= limit_s:
            break
    return best
