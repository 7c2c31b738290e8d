"""A uuid is added as one line, every other byte stays, and what is not safe is refused."""

from random import Random
from typing import Tuple

import pytest

from companion.boards.frontmatter import card_uuid, read_front_matter
from companion.boards.uuid_line import Refused, block_with_uuid, card_with_uuid, newline_of
from companion.boards.yaml_cursor import YamlError
from tests.companion.boards import yaml_generator

UUID = "5f0c1f3e-8f53-4a77-9d3f-1f6f2f7a9b10"
U = UUID.encode()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"---\ntitle: x\n---\nbody", b"---\nuuid: %s\ntitle: x\n---\nbody"),
        (b"---\r\ntitle: x\r\n---\r\nbody", b"---\r\nuuid: %s\r\ntitle: x\r\n---\r\nbody"),
        (b"---\n# note\ntitle: x\n---\n", b"---\n# note\nuuid: %s\ntitle: x\n---\n"),
        (b"---\n  title: x\n  tags: [a]\n---\n", b"---\n  uuid: %s\n  title: x\n  tags: [a]\n---\n"),
        (b"---\n# only a note\n---\n", b"---\n# only a note\nuuid: %s\n---\n"),
        (b"---\n---\nbody\n", b"---\nuuid: %s\n---\nbody\n"),
        (b"---\r\n---\r\n", b"---\r\nuuid: %s\r\n---\r\n"),
        (b"---\n\n---\n", b"---\nuuid: %s\n---\n"),
        (b"---\n---\ntitle: x\n---\n", b"---\n---\nuuid: %s\ntitle: x\n---\n"),
        (b"---\n{}\n---\n", b'---\n{"uuid": "%s"}\n---\n'),
        (b'---\n{"title": "x"}\n---\n', b'---\n{"uuid": "%s", "title": "x"}\n---\n'),
        (b"---\nuuid:\ntitle: x\n---\n", b"---\nuuid: %s\ntitle: x\n---\n"),
        (b"---\ntitle: x\nuuid: # to do\n---\n", b"---\ntitle: x\nuuid: %s # to do\n---\n"),
        (b"---\nuuid: ~\r\n---\n", b"---\nuuid: %s\r\n---\n"),
        (b"---\nuuid: null\ntags:\n- uuid: null\n---\n", b"---\nuuid: %s\ntags:\n- uuid: null\n---\n"),
        (b"---\ntags:\n- uuid:\nuuid: ''\n---\n", b"---\ntags:\n- uuid:\nuuid: %s\n---\n"),
        (b'---\n"uuid": "  "\n---\n', b'---\n"uuid": %s\n---\n'),
        (b"---\n{title: x, uuid: }\n---\n", b"---\n{title: x, uuid: %s }\n---\n"),
        (b'---\n{"uuid":null}\n---\n', b'---\n{"uuid": %s}\n---\n'),
        (b"# Title\n\nText\n", b"---\nuuid: %s\n---\n\n# Title\n\nText\n"),
        (b"# Title\r\n", b"---\r\nuuid: %s\r\n---\r\n\r\n# Title\r\n"),
        (b"\nText", b"---\nuuid: %s\n---\n\nText"),
        (b"", b"---\nuuid: %s\n---\n"),
        (b"caf\xe9 in another encoding\n", b"---\nuuid: %s\n---\n\ncaf\xe9 in another encoding\n"),
        (b"---\ntitle: caf\xe9\n---\n", b"---\nuuid: %s\ntitle: caf\xe9\n---\n"),
        (b"----\nText\n", b"---\nuuid: %s\n---\n\n----\nText\n"),
        (b"---\n\ntitle: x\n---\n", b"---\n\nuuid: %s\ntitle: x\n---\n"),
    ],
)
def test_one_line_is_added(before: bytes, after: bytes) -> None:
    """In the file's own line ends and indentation, where a reader would look for it."""
    repaired = card_with_uuid(before, UUID)
    assert repaired.data == after.replace(b"%s", U)
    assert (repaired.uuid, repaired.notes) == (UUID, ())
    assert card_uuid(repaired.data) == UUID


def test_a_byte_order_mark_is_taken_away_and_told() -> None:
    """It hides the whole head; a uuid behind it is kept."""
    note = ("removed the byte order mark in front",)
    own = card_with_uuid(b"\xef\xbb\xbf---\nuuid: mine\n---\n", UUID)
    assert (own.data, own.uuid, own.notes) == (b"---\nuuid: mine\n---\n", "mine", note)
    new = card_with_uuid(b"\xef\xbb\xbf---\r\ntitle: x\r\n---\r\n", UUID)
    assert (new.data, new.uuid, new.notes) == (
        b"---\r\nuuid: " + U + b"\r\ntitle: x\r\n---\r\n",
        UUID,
        note,
    )


def test_a_card_with_a_uuid_stays_as_it_is() -> None:
    """Byte for byte."""
    data = b"---\nuuid: mine\n---\ntext"
    assert card_with_uuid(data, UUID).data == data
    assert card_with_uuid(data, UUID).uuid == "mine"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"---\nuuid: 12\n---\n", "not text but 12"),
        (b"---\nuuid: [a]\n---\n", "not text but a list"),
        (b"---\nuuid: {a: b}\n---\n", "not text but a mapping"),
        (b"---\nuuid: true\n---\n", "not text but True"),
        (b"---\ntitle: Fix: x\n---\n", "line 2: "),
        (b"---\na: 1\nb: 2\na: 3\n---\n", "line 4: the key 'a' stands there twice"),
        (b"---\n- a\n---\n", "there are no keys"),
        (b"---\nSome words.\n---\n", "there are no keys"),
        (b"---\n~\n---\n", "there are no keys"),
        (b"---\ntitle: never closed\n", "never closed"),
        (b"--- \ntitle: x\n---\n", "first line is not exactly"),
        (b"\n---\ntitle: x\n---\n", "first line is not exactly"),
        (b"---\rtitle: x\r---\r", "first line is not exactly"),
        (b"\xff\xfe-\0-\0-\0\n\0", "not UTF-8"),
        (b"---\nuuid: !!null\n---\n", "no place"),
        (b"---\n? uuid\n: \n---\n", "no place"),
        (b"---\nuuid: &x\nb: *x\n---\n", "no place"),
    ],
)
def test_what_is_not_safe_is_refused_with_the_reason(data: bytes, why: str) -> None:
    """A person has to look at it."""
    with pytest.raises(Refused, match=why):
        card_with_uuid(data, UUID)


def _cut(before: bytes, after: bytes) -> Tuple[bytes, bytes]:
    """(What went, what came) between the longest common beginning and end."""
    front = 0
    while front < min(len(before), len(after)) and before[front] == after[front]:
        front += 1
    back = 0
    while back < min(len(before), len(after)) - front and before[-1 - back] == after[-1 - back]:
        back += 1
    return before[front : len(before) - back], after[front : len(after) - back]


def _other_fields(data: bytes) -> str:
    fields = read_front_matter(data).fields
    return repr({key: value for key, value in fields.items() if key != "uuid"})  # repr: NaN is NaN


def test_generated_cards_lose_no_byte_and_keep_their_meaning() -> None:
    """Whatever it looks like: one piece is put in, and all other fields read as before."""
    random = Random(7)
    repaired_cards = 0
    for _ in range(4000):
        before = yaml_generator.card(random)
        try:
            repaired = card_with_uuid(before, UUID)
        except Refused as exc:
            assert str(exc)
            continue
        assert card_uuid(repaired.data) == repaired.uuid
        if repaired.uuid != UUID:
            continue
        repaired_cards += 1
        text = before[3:] if repaired.notes else before  # without the byte order mark
        assert _other_fields(repaired.data) == _other_fields(text)
        went, came = _cut(text, repaired.data)
        assert len(came) <= len(U) + len("---\r\nuuid: \r\n---\r\n\r\n")
        assert went in (b"", b"~", b"null", b"Null", b"NULL") or not went.strip(b"'\" \t"), (
            text,
            repaired.data,
        )
    assert repaired_cards > 100


def test_a_block_of_its_own_can_be_extended() -> None:
    """As the board's file is, which has no fences."""
    assert block_with_uuid(b"# note\ncolumns: []\n", "u") == b"# note\nuuid: u\ncolumns: []\n"
    assert block_with_uuid(b"# note\n", "u") == b"# note\nuuid: u\n"
    assert block_with_uuid(b"a: b", "u", b"\r\n") == b"uuid: u\r\na: b"
    with pytest.raises(Refused, match="already"):
        block_with_uuid(b"uuid: x\n", "u")
    with pytest.raises(YamlError):
        block_with_uuid(b"a: b: c\n", "u")


@pytest.mark.parametrize(
    ("data", "newline"),
    [(b"", b"\n"), (b"a\nb\r\n", b"\n"), (b"a\r\nb\n", b"\r\n"), (b"\n", b"\n"), (b"a\r", b"\n")],
)
def test_the_first_line_tells_the_line_end(data: bytes, newline: bytes) -> None:
    """CRLF or LF."""
    assert newline_of(data) == newline
