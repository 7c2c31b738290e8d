"""YAML text becomes the values that js-yaml makes of it."""

import os
import time
from random import Random
from typing import Dict, List

import pytest

from companion.boards.frontmatter import HEAD_LIMIT_BYTES
from companion.boards.yaml_cursor import YamlError
from companion.boards.yaml_values import Scalar, key_text, load, plain_value
from tests.companion.boards import yaml_generator
from tests.companion.boards.js_yaml import Answer, JsYaml, ours, recorded, theirs

# Enough to meet every branch many times in a few seconds; more by hand: MDELLO_YAML_DOCUMENTS.
GENERATED = int(os.environ.get("MDELLO_YAML_DOCUMENTS", "6000"))
SEED = int(os.environ.get("MDELLO_YAML_SEED", "20260102"))


@pytest.mark.parametrize(("text", "answer"), recorded(), ids=lambda value: repr(value)[:60])
def test_a_recorded_document_reads_as_js_yaml_read_it(text: str, answer: Answer) -> None:
    """Malformed or not, and each value: the committed table holds without node."""
    assert ours(text) == theirs(answer)


def test_the_recorded_answers_are_those_of_js_yaml(js_yaml: JsYaml) -> None:
    """The table was not edited by hand."""
    cases = recorded()
    assert [answer for _, answer in cases] == js_yaml.texts([text for text, _ in cases])


def test_generated_documents_read_as_js_yaml_reads_them(js_yaml: JsYaml) -> None:
    """Thousands of heads, changed by chance, agree on malformed or not and on every value."""
    random = Random(SEED)
    texts = [yaml_generator.text(random) for _ in range(GENERATED)]
    differing = [
        (text, answer, ours(text))
        for text, answer in zip(texts, js_yaml.texts(texts))
        if ours(text) != theirs(answer)
    ]
    assert not differing, differing[0]
    assert sum(ours(text)[0] for text in texts) > GENERATED // 10, "hardly anything was well-formed"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("~", None),
        ("True", True),
        ("FALSE", False),
        ("0x1F", 31),
        ("0o17", 15),
        ("-12", -12),
        ("0123", 123),
        ("1.5e1", 15.0),
        ("yes", "yes"),
        ("1_0", "1_0"),
        ("2026-01-02", "2026-01-02"),
    ],
)
def test_plain_words_stand_for_core_schema_values(text: str, value: Scalar) -> None:
    """The core schema of YAML 1.2: no dates, no yes and no, no underscores."""
    assert plain_value(text) == value
    assert type(plain_value(text)) is type(value)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (None, "null"),
        (True, "true"),
        (1, "1"),
        (1.0, "1"),
        (0.5, "0.5"),
        (1e21, "1e+21"),
        (1e20, "1" + "0" * 20),
        (1e-06, "0.000001"),
        (1e-07, "1e-7"),
        (-1.5e300, "-1.5e+300"),
        (float("nan"), "NaN"),
        (-0.0, "0"),
        (float("inf"), "Infinity"),
        (2.0**60, "1152921504606847000"),
        ("x", "x"),
    ],
)
def test_keys_are_spelled_as_javascript_spells_them(key: Scalar, text: str) -> None:
    """``1`` and ``"1"`` are the same key there, so they are a duplicate here."""
    assert key_text(key) == text


def test_an_alias_may_lead_into_itself() -> None:
    """A list that contains itself is a value like any other; nothing walks it."""
    value = load("a: &x [*x]")
    assert isinstance(value, dict)
    inner = value["a"]
    assert isinstance(inner, list) and inner[0] is inner


def test_aliases_are_shared_not_copied() -> None:
    """A thousand million laughs cost a hundred lines."""
    lines = [f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 90)]
    assert len(load("a0: &a0 [x, x]\n" + "\n".join(lines))) == 90  # type: ignore[arg-type]


def test_an_error_names_its_line() -> None:
    """Lines count from 0."""
    with pytest.raises(YamlError) as caught:
        load("a: b\nc: d\ntitle: Fix: x\n")
    assert caught.value.line == 2


def _nasty(size: int) -> Dict[str, str]:
    """Texts of about ``size`` characters that make careless readers quadratic or worse."""
    rows: List[str] = ["\ufeff\n#", "#x", "&a", "!b", "a: &a", "- |\n   x", '"a": 1', "a", "...", "%TAG !a"]
    made = {row: (row + "\n") * (size // (len(row) + 1)) for row in rows}
    for part in [
        "[",
        "{",
        "- ",
        "? ",
        ": ",
        "&a ",
        "x: y, ",
        "\t",
        " ",
        "\n",
        "%41",
        "b:c#d,",
        "''",
        "\\n",
        "9",
    ]:
        made[f"a: {part}"] = "a: " + part * (size // len(part))
        made[f"[ {part}"] = "[" + part * (size // len(part))
        made[f'" {part}'] = 'a: "' + part * (size // len(part)) + '"'
        made[f"' {part}"] = "a: '" + part * (size // len(part)) + "'"
        made[f"| {part}"] = "a: |\n " + part * (size // len(part))
        made[f"! {part}"] = "a: !" + part * (size // len(part))
    made["nested anchors"] = "".join(f"{' ' * n}&a{n}\n{' ' * n}&b{n} k:\n" for n in range(90))
    return made


@pytest.mark.parametrize("name", sorted(_nasty(9)))
def test_the_longest_head_is_read_in_linear_time(name: str) -> None:
    """Eight times the text takes about eight times as long; quadratic would be sixty-four."""
    small, large = _nasty(HEAD_LIMIT_BYTES // 8)[name], _nasty(HEAD_LIMIT_BYTES)[name]
    best = min(_seconds(small) for _ in range(3))
    assert any(_seconds(large) < 30 * best + 0.05 for _ in range(4))


def _seconds(text: str) -> float:
    start = time.process_time()
    ours(text)
    return time.process_time() - start
