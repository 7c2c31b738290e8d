"""A card's head: its fences, its uuid, and why there is none."""

import os
from random import Random

import pytest

from companion.boards import frontmatter
from companion.boards.frontmatter import (
    HEAD_LIMIT_BYTES,
    Nested,
    card_uuid,
    head_is_complete,
    read_front_matter,
    trimmed,
    why_no_uuid,
)
from tests.companion.boards import yaml_generator
from tests.companion.boards.js_yaml import JsYaml

GENERATED = int(os.environ.get("MDELLO_YAML_DOCUMENTS", "6000"))
SEED = int(os.environ.get("MDELLO_YAML_SEED", "20260102"))

UUID = "5f0c1f3e-8f53-4a77-9d3f-1f6f2f7a9b10"


@pytest.mark.parametrize(
    ("data", "uuid"),
    [
        (b"---\nuuid: a\n---\n", "a"),
        (b"---\r\nuuid: a\r\n---\r\n", "a"),
        (b"---\nuuid: a\r\n---", "a"),
        (b"---\nuuid: a\n---", "a"),
        (b"---\nuuid: a\n----\n", "a"),
        (b"---\nuuid: a\n--- rest of this line is body", "a"),
        (b"---\n---\nuuid: a\n---\n", "a"),
        (b"---\n\nuuid: a\n\n---\n", "a"),
        (b"---\nuuid: a\nb: |\n  ---\n---\n", "a"),
        (b"\xef\xbb\xbf---\nuuid: a\n---\n", None),
        (b"\n---\nuuid: a\n---\n", None),
        (b"--- \nuuid: a\n---\n", None),
        (b"---\ruuid: a\r---\r", None),
        (b"----\nuuid: a\n---\n", None),
        (b"---\nuuid: a\n--\n", None),
        (b"---\nuuid: a\n ---\n", None),
        (b"---\n---\n", None),
        (b"---\n---\nuuid: a\n", None),
        (b"---\nuuid: a---", None),
        (b"uuid: a\n", None),
        (b"", None),
        (b"---", None),
        (b"---\n", None),
        (b"---\n\n---\n", None),
        (b"---\nuuid: a\n--- \n---\nuuid: b\n---\n", "a"),
        (b"---\nuuid: a\nb: caf\xe9\n---\n", "a"),
        (b"---\nuuid: caf\xc3\xa9\n---\n", "caf\u00e9"),
    ],
)
def test_the_fences_decide_where_the_head_is(data: bytes, uuid: object) -> None:
    """From the first byte to the first line that begins with three dashes; LF or CRLF."""
    assert card_uuid(data) == uuid


@pytest.mark.parametrize(
    "line",
    [
        "title: Fix: x",
        "title: @x",
        "title: `x`",
        "title: %x",
        "title: *x",
        "title: !foo x",
        "\ttitle: x",
        "title: x\ntitle: y",
        "title: x\n   y: z",
        "title: \x07",
        "title: x\x00",
        "title: 'x",
        "title: [x",
        "[x]: y",
    ],
)
def test_one_malformed_line_anywhere_hides_the_uuid(line: str) -> None:
    """In front of it or behind it; the problem names the line of the file."""
    behind = read_front_matter(f"---\nuuid: {UUID}\n{line}\n---\n".encode())
    front = read_front_matter(f"---\n{line}\nuuid: {UUID}\n---\n".encode())
    assert behind.fields == front.fields == {}
    assert str(behind.problem).startswith("line ")
    assert int(str(behind.problem).split(":")[0][5:]) in range(2, 6)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("123", "its uuid is not text but 123 (quotes make it text)"),
        ("true", "its uuid is not text but True (quotes make it text)"),
        ("[a]", "its uuid is not text but a list (quotes make it text)"),
        ("{a: b}", "its uuid is not text but a mapping or a nested list (quotes make it text)"),
        ("", "its uuid is empty"),
        ("~", "its uuid is empty"),
        ("'  '", "its uuid is empty"),
        ('"\\u00a0\\ufeff"', "its uuid is empty"),
    ],
)
def test_a_uuid_must_be_text_that_is_not_blank(value: str, why: str) -> None:
    """The reason is told to people."""
    front = read_front_matter(f"---\nuuid: {value}\n---\n".encode())
    assert frontmatter.uuid_of(front) is None
    assert why_no_uuid(front) == why


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "it has no front matter"),
        (b"# Title\n", "it has no front matter"),
        (b"\xef\xbb\xbf---\nuuid: a\n---\n", "a byte order mark stands in front of its front matter"),
        (b"--- \nuuid: a\n---\n", "its first line is not exactly ---"),
        (b"\n\n---\nuuid: a\n---\n", "its first line is not exactly ---"),
        (b"---\rx", "its first line is not exactly ---"),
        (b"---\nuuid: a\n", "its front matter is empty or never closed by ---"),
        (b"---\ntitle: a\n---\n", "its front matter has no uuid"),
        (b"---\n- a\n---\n", "its front matter holds no keys"),
        (b"---\nUUID: a\n---\n", "its front matter has no uuid"),
        (b"---\na: {uuid: b}\n---\n", "its front matter has no uuid"),
        (b"---\na: &x {uuid: b}\n<<: *x\n---\n", "its front matter has no uuid"),
        (b"---\nuuid: a\n---\n", ""),
    ],
)
def test_a_file_that_is_no_card_says_why(data: bytes, why: str) -> None:
    """Nothing when it is one."""
    assert why_no_uuid(read_front_matter(data)) == why


def test_the_uuid_is_trimmed_as_javascript_trims() -> None:
    """No-break spaces and byte order marks go; U+0085 and the separators U+001C to U+001F stay."""
    assert card_uuid(b'---\nuuid: "\\t\\u00a0 a b\\u2028\\ufeff"\n---\n') == "a b"
    assert trimmed("\u3000\u2000a\u202f") == "a"
    assert trimmed("\x85a\x1c") == "\x85a\x1c"


def test_fields_hold_values_without_depth() -> None:
    """Scalars and lists of scalars; whatever is deeper could be endless and is not kept."""
    front = read_front_matter(b"---\nuuid: a\norder: 1.5\ntags: [a, 1]\nb: {c: d}\ne: &x [*x]\n---\nbody")
    assert front.fields == {
        "uuid": "a",
        "order": 1.5,
        "tags": ["a", 1],
        "b": Nested.VALUE,
        "e": Nested.VALUE,
    }


@pytest.mark.parametrize(
    ("data", "body"),
    [
        (b"---\na: b\n---\nbody", b"body"),
        (b"---\r\na: b\r\n---\r\n\r\nbody", b"\r\nbody"),
        (b"---\na: b\n--- x", b" x"),
        (b"---\na: b\n----\n", b"-\n"),
        (b"---\na: b: c\n---\nbody", b"body"),
        (b"no head", b"no head"),
    ],
)
def test_the_body_begins_behind_the_closing_fence(data: bytes, body: bytes) -> None:
    """Also behind a head that is malformed; without a head all is body."""
    assert data[read_front_matter(data).body_start :] == body


def test_reading_can_stop_where_the_head_ends() -> None:
    """What follows cannot change what the head says; before its end it may."""
    data = b"---\nuuid: a\n---\nbody"
    assert [head_is_complete(data[:size]) for size in (3, 5, 14, 15, 20)] == [False, False, False, True, True]
    assert head_is_complete(b"Just text, no fence")
    assert not head_is_complete(b"---\n" + b"x" * 1000)
    assert head_is_complete(b"---\n" + b"x" * HEAD_LIMIT_BYTES)


def test_a_head_that_never_ends_is_told_as_such() -> None:
    """Nobody writes that much; a huge file must not be read as a whole."""
    data = b"---\nuuid: a\n" + b"# x\n" * HEAD_LIMIT_BYTES + b"---\n"
    assert why_no_uuid(read_front_matter(data)) == "its front matter is not closed within 64 kB"


def test_generated_cards_are_read_as_js_yaml_reads_them(js_yaml: JsYaml) -> None:
    """Odd fences, broken bytes, every kind of damage: the same uuid or none, for the same reason."""
    random = Random(SEED)
    cards = [yaml_generator.card(random) for _ in range(GENERATED)]
    found = 0
    for data, answer in zip(cards, js_yaml.cards(cards)):
        front = read_front_matter(data)
        found += answer["uuid"] is not None
        assert card_uuid(data) == answer["uuid"], (data, answer)
        assert (front.body_start > 0) == answer["found"], (data, answer)
        assert (front.body_start > 0 and str(front.problem).startswith("line ")) == (not answer["ok"]), data
    assert found > GENERATED // 50, "hardly any card had a uuid"


def test_any_bytes_are_read_without_an_error() -> None:
    """Files come from anybody."""
    random = Random(SEED)
    for _ in range(2000):
        read_front_matter(b"---\n" + random.randbytes(random.randint(0, 60)) + b"\n---\n")
