"""The rule for card paths, in JavaScript as in Python: one table, and texts that nobody thought of."""

import json
import random
from pathlib import Path
from typing import Any, Dict, List

from adapters import paths
from tests.adapters.client.node import Talk

TABLE: Dict[str, List[Dict[str, Any]]] = json.loads(
    (Path(__file__).resolve().parents[2] / "fixtures" / "paths.json").read_text("utf-8")
)
PIECES = ["/", ".md", "a", "C:", "\\", "'", '"', "`", "\n", "\r", " ", ".", "_", "é", "x.md", "日", "/b.md"]
SEED = 20261201


def test_the_table_holds_in_both_languages(paths_in_js: Talk) -> None:
    """Row by row the same candidates, tool paths and texts, and those that the table names."""
    answer = paths_in_js.ask(
        texts=[row["text"] for row in TABLE["text"]],
        tools=[[row["value"], row["cwd"]] for row in TABLE["tool"]],
        contents=[row["content"] for row in TABLE["message"]],
    )
    for row, found in zip(TABLE["text"], answer["texts"]):
        assert found == list(paths.candidates_in_text(row["text"])) == row["candidates"], row
    for row, found in zip(TABLE["tool"], answer["tools"]):
        assert found == paths.tool_path(row["value"], row["cwd"]) == row["path"], row
    for row, found in zip(TABLE["message"], answer["contents"]):
        assert found == paths.text_of(row["content"]) == row["text"], row


def test_random_texts_give_the_same_in_both_languages(paths_in_js: Talk) -> None:
    """Thousands of texts from the pieces that matter."""
    dice = random.Random(SEED)
    texts = ["".join(dice.choices(PIECES, k=dice.randrange(60))) for _ in range(4000)]
    found = paths_in_js.ask(texts=texts)["texts"]
    assert sum(map(bool, found)) > 1000
    for text, candidates in zip(texts, found):
        assert candidates == list(paths.candidates_in_text(text)), text


def test_the_bounds_are_the_same_in_both_languages(paths_in_js: Talk) -> None:
    """Over-long paths, floods of matches and of later starts, and texts that are not read to the end."""
    most = paths.MAX_PATH_CHARS
    texts = [
        "/ " * 500 + "/a/b.md",
        "/" + "x " * most + " and /a/b.md",
        *("/" + "x" * length + ".md" for length in (most - 5, most - 4, most - 3)),
        "/a " + "x" * (most - 8) + " /b.md",
        "\n".join(f"/p{number} /q /r /s.md" for number in range(3000)),
        "\n".join(f"/{number}.md" for number in range(paths.MAX_MATCHES + 500)),
        "x" * (paths.MAX_TEXT_CHARS - 4) + " /a/b.md",
        "x" * (paths.MAX_TEXT_CHARS - 8) + " /a/b.md",
    ]
    for text, candidates in zip(texts, paths_in_js.ask(texts=texts)["texts"]):
        assert candidates == list(paths.candidates_in_text(text)), text[:80]


def test_both_languages_agree_on_what_can_be_a_card(paths_in_js: Talk) -> None:
    """Absolute, of bounded length, without NUL and without half a surrogate pair."""
    cards = ["/a.md", "a.md", "", "/a\0.md", "/\ud83d.md", "/\ude00.md", "/\U0001f600.md", "/" + "x" * 4095]
    cards += ["/" + "x" * 4096, "C:/a.md"]
    assert paths_in_js.ask(cards=cards)["cards"] == [paths.can_be_card(card) for card in cards]


def test_the_search_is_linear(paths_in_js: Talk) -> None:
    """Eight times the text takes about eight times the processor time; a quadratic search, 64 times."""
    pieces = ["/a", "/ ", "/x.md ", "/.md", "x.md ", "/'", "/'.md", "/'/x.md", "C:/", "/a\n", ".md'"]
    slow = [[piece, tail] for piece in [*pieces, "' /a b.md /"] for tail in ("", " /z.md", "'x.md")]
    for case, (small, large) in zip(slow, paths_in_js.ask(slow=slow)["slow"]):
        assert large <= max(small * 24, 20), case
