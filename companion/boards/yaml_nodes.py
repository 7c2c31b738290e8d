"""Reads YAML's nodes: block and flow collections, keys, anchors and tags.

Depth is limited as in js-yaml and every character is read a bounded number of times, so time
is linear in the text.
"""

from typing import Optional

from companion.boards import yaml_scalars as scalars
from companion.boards.yaml_cursor import END, SPACE, SPACE_OR_END
from companion.boards.yaml_events import (
    ALIAS,
    CLOSE,
    MAPPING,
    SEQUENCE,
    Draft,
    Properties,
    Trial,
)
from companion.boards.yaml_tags import read_name, read_tag

MAX_DEPTH = 100  # js-yaml's default: what is nested deeper is malformed there too.

# Where a node stands; block styles are possible in the last two only.
_IN_FLOW, _KEY, _ENTRY, VALUE = range(4)

_TAB = "tab used as indentation"
_COLON = "a value with ': ' in it needs quotes"
_BEHIND = "bad indentation, or text behind a value"


def read_node(
    draft: Draft,
    parent_indent: int,
    context: int,
    seek: bool = False,
    compact: bool = True,
    key_props: bool = True,
) -> bool:
    """Read one node, if there is any (in ``_ENTRY`` and ``VALUE`` there always is: an empty one).

    ``seek``: look for it on further lines. ``compact``: a block collection may begin on this
    line. ``key_props``: properties on this line may belong to a key instead of the node.
    """
    if draft.depth >= MAX_DEPTH:
        draft.at.fail("nested too deep")
    draft.depth += 1
    found = _Node(draft, parent_indent, context, compact, key_props).read(seek)
    draft.depth -= 1
    return found


class _Node:
    """One node while it is read."""

    def __init__(
        self, draft: Draft, parent_indent: int, context: int, compact: bool, key_props: bool
    ) -> None:
        self._draft = draft
        self._at = draft.at
        self._parent_indent = parent_indent
        self._context = context
        self._compact = compact
        self._key_props = key_props
        self._block = context in (_ENTRY, VALUE)
        self._collections = self._block  # whether a block collection may begin here
        self._flow_indent = parent_indent + 1 if self._block else parent_indent
        self._props = Properties()
        self._props_at: Optional[Trial] = None
        self._new_line = False
        self._deeper = 1  # 1, 0, -1: indented more than the parent, as much, less

    def read(self, seek: bool) -> bool:
        if seek and self._at.skip_space():
            self._cross_line()
        if self._deeper == 1 and self._read_properties():
            return True
        self._collections = self._collections and (self._new_line or self._compact)
        if self._read_content():
            return True
        if self._props or self._block:
            self._draft.add_empty(self._props)
            return True
        return False

    def _cross_line(self) -> None:
        self._new_line = True
        self._deeper = (self._at.indent > self._parent_indent) - (self._at.indent < self._parent_indent)

    def _read_properties(self) -> bool:
        """Anchor and tag. True when a mapping was read whose first key has the last of them."""
        at = self._at
        while at.char in "!&":
            here = self._draft.trial()
            if self._new_line and self._deeper != 1:
                break
            if self._new_line and self._props:
                if self._block and self._mapping_from(here):
                    return True
                if self._props.tag if at.char == "!" else self._props.anchor:
                    break
            self._read_property()
            self._props_at = self._props_at or here
            self._collections = False
            if at.skip_space():
                self._collections = self._block
                self._cross_line()
        return False

    def _mapping_from(self, here: Trial) -> bool:
        column = self._at.pos - self._at.line_start
        mapping = _BlockMapping(self._draft, column, self._parent_indent + 1, self._props)
        if mapping.read() and self._draft.is_mapping(here):
            return True
        self._draft.take_back(here)
        return False

    def _read_property(self) -> None:
        at, props = self._at, self._props
        if at.char == "!":
            if props.tag:
                at.fail("two tags")
            props.tag = read_tag(at, self._context == _IN_FLOW, self._draft.handles)
        else:
            if props.anchor:
                at.fail("two anchors")
            props.anchor = read_name(at)

    def _read_content(self) -> bool:
        if self._deeper == 1:
            return self._read_collection() or self._read_mapping_behind() or self._read_scalar()
        if self._deeper == 0 and self._context == VALUE and self._collections:
            return _read_block_sequence(self._draft, self._column, self._props)
        return False

    @property
    def _column(self) -> int:
        return self._at.pos - self._at.line_start

    def _read_collection(self) -> bool:
        if self._collections:
            if _read_block_sequence(self._draft, self._column, self._props):
                return True
            if _BlockMapping(self._draft, self._column, self._flow_indent, self._props).read():
                return True
        return _read_flow_collection(self._draft, self._flow_indent, self._props)

    def _read_mapping_behind(self) -> bool:
        """``&a key: value``: the properties are the key's, and the node is a mapping."""
        if self._props_at is None or not (self._key_props and self._block):
            return False
        if self._collections or self._at.char in "|>":
            return False
        here = self._draft.trial()
        start = self._props_at[0]
        self._draft.take_back(self._props_at)
        mapping = _BlockMapping(self._draft, start.pos - start.line_start, self._flow_indent, None)
        if mapping.read() and self._draft.is_mapping(here):
            return True
        self._draft.take_back(here)
        return False

    def _read_scalar(self) -> bool:
        at, indent, draft = self._at, self._flow_indent, self._draft
        text = scalars.read_block(at, indent) if self._block else None
        if text is None:
            text = scalars.read_single_quoted(at, indent)
        if text is None:
            text = scalars.read_double_quoted(at, indent)
        if text is not None:
            draft.add_scalar(text, False, self._props)
            return True
        if at.char == "*":
            if self._props:
                at.fail("an alias with an anchor or tag")
            draft.add(ALIAS, read_name(at))
            return True
        text = scalars.read_plain(at, indent, self._context == _IN_FLOW)
        if text is not None:
            draft.add_scalar(text, True, self._props)
        return text is not None


def _read_block_sequence(draft: Draft, indent: int, props: Properties) -> bool:
    at = draft.at
    if at.first_tab != -1 or not _at_dash(draft):
        return False
    draft.open(SEQUENCE, props)
    while _at_dash(draft):
        if at.first_tab != -1:
            at.fail(_TAB)
        line = at.line
        at.pos += 1
        broken = at.skip_space() > 0
        if at.first_tab != -1 and _at_dash(draft):
            at.fail(_TAB)
        if broken and at.indent <= indent:
            draft.add_empty()
        else:
            read_node(draft, indent, _ENTRY)
        at.skip_space()
        if at.indent < indent or at.at_end:
            break
        if at.indent > indent or (at.line == line and _at_dash(draft)):
            at.fail("bad indentation of a list entry")
    draft.add(CLOSE)
    return True


def _at_dash(draft: Draft) -> bool:
    return draft.at.char == "-" and draft.at.following in SPACE_OR_END


# What reading a key of a block mapping came to.
_HAS_KEY, _NO_KEY, _NO_MAPPING, _TAKEN_BACK = range(4)


class _BlockMapping:
    """A block mapping while it is read; or the single node that stands there instead."""

    def __init__(self, draft: Draft, indent: int, flow_indent: int, props: Optional[Properties]) -> None:
        self._draft = draft
        self._at = draft.at
        self._indent = indent
        self._flow_indent = flow_indent
        self._props = props
        self._in_explicit_key = False  # behind ``?``, until its ``:``
        self._opened = False

    def read(self) -> bool:
        """True when a mapping was read, or a node that turned out to be no key; else all is as before."""
        at = self._at
        if at.first_tab != -1:
            return False
        while at.char != END:
            if not self._in_explicit_key and at.first_tab != -1:
                at.fail(_TAB)
            line = at.line
            marked = at.char in "?:" and at.following in SPACE_OR_END
            outcome = self._read_mark() if marked else self._read_key()
            if outcome == _NO_KEY:
                break
            if outcome != _HAS_KEY:
                return outcome == _NO_MAPPING
            read_node(self._draft, self._indent, VALUE, seek=True, compact=marked)
            at.skip_space()
            if (at.line == line or at.indent > self._indent) and at.char != END:
                at.fail(_COLON if at.line == line and at.char == ":" else _BEHIND)
            if at.indent < self._indent:
                break
        return self._close()

    def _close(self) -> bool:
        if not self._opened:
            return False
        if self._in_explicit_key:
            self._draft.add_empty()
        self._draft.add(CLOSE)
        return True

    def _open(self, before: Optional[Trial] = None) -> None:
        if not self._opened:
            self._draft.open(MAPPING, self._props, before)
            self._opened = True

    def _read_mark(self) -> int:
        """``?`` in front of a key of any kind, or the ``:`` that belongs to it."""
        self._open()
        is_key = self._at.char == "?"
        if is_key == self._in_explicit_key:  # the value of the key before, or this value's key
            self._draft.add_empty()
        self._in_explicit_key = is_key
        self._at.pos += 1
        return _HAS_KEY

    def _read_key(self) -> int:
        """A key on one line with its ``:``."""
        at, draft = self._at, self._draft
        if self._in_explicit_key:
            draft.add_empty()
            self._in_explicit_key = False
        line, before = at.line, draft.trial()
        if not read_node(draft, self._flow_indent, _KEY):
            return _NO_KEY
        if at.line == line:
            at.skip_blanks()
        if at.line == line and at.char == ":":
            at.pos += 1
            if at.char not in SPACE_OR_END:
                at.fail("no space behind the colon of a key")
            self._open(before)
            return _HAS_KEY
        if self._opened:
            at.fail("a key without its colon, or on several lines")
        if self._props:
            draft.take_back(before)
            return _TAKEN_BACK
        return _NO_MAPPING


def _read_flow_collection(draft: Draft, indent: int, props: Properties) -> bool:
    """``[...]`` or ``{...}``."""
    at = draft.at
    if at.char not in "[{":
        return False
    is_mapping = at.char == "{"
    closing = "}" if is_mapping else "]"
    draft.open(MAPPING if is_mapping else SEQUENCE, props)
    at.pos += 1
    ready = True  # for an entry: at the beginning or behind a comma
    while at.char != END:
        _skip_flow_space(draft, indent)
        if at.char == closing:
            at.pos += 1
            draft.add(CLOSE)
            return True
        if not ready or at.char == ",":
            at.fail("a comma too few or too many in brackets")
        _read_flow_entry(draft, indent, is_mapping)
        ready = at.char == ","
        at.pos += ready
    at.fail("brackets that are never closed")


def _read_flow_entry(draft: Draft, indent: int, is_mapping: bool) -> None:
    at = draft.at
    explicit = at.char == "?" and at.following in SPACE
    if explicit:
        at.pos += 1
        _skip_flow_space(draft, indent)
    line, before = at.line, draft.trial()
    has_key = read_node(draft, indent, _IN_FLOW)
    _skip_flow_space(draft, indent)
    has_value = at.char == ":" and (is_mapping or explicit or at.line == line)
    if has_value:
        at.pos += 1
        _skip_flow_space(draft, indent)
    single_pair = not is_mapping and (has_value or explicit)
    if single_pair:
        draft.open(MAPPING, before=before)
    if not has_key and (has_value or explicit):
        draft.add_empty()
    if (is_mapping or single_pair) and not (has_value and read_node(draft, indent, _IN_FLOW)):
        draft.add_empty()
    if has_value:
        _skip_flow_space(draft, indent)
    if single_pair:
        draft.add(CLOSE)


def _skip_flow_space(draft: Draft, indent: int) -> None:
    at = draft.at
    line = at.line
    at.skip_space()
    if (at.line > line or at.first_tab != -1) and at.indent < indent:
        at.fail("too little indentation in brackets")
