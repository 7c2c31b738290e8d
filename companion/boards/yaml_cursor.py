"""Where the YAML reader stands in its text: position, line, indentation, tabs.

The reader follows js-yaml 5 (YAML 1.2), because that is what decides on the other side whether a
file is a card. Where the two could differ the rule is js-yaml's, not the specification's; the
tests compare them over generated documents.
"""

import re
from typing import NamedTuple, NoReturn

END = "\0"  # Stands behind the text, so that looking ahead never leaves it.
EOL = "\n\r"
BLANK = " \t"
SPACE = BLANK + EOL
SPACE_OR_END = SPACE + END
FLOW_INDICATORS = ",[]{}"
BOM = "\ufeff"

# The longest look ahead is that of a document separator: three characters and the one behind.
_PADDING = END * 5
_BLANKS = re.compile(r"[ \t]*")
_SPACES = re.compile(r" *")
_TO_LINE_END = re.compile(r"[^\r\n\0]*")


class YamlError(ValueError):
    """The text is not YAML as js-yaml reads it. ``str(error)`` says why, ``line`` where."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line
        """Line in the YAML text, from 0."""


class Place(NamedTuple):
    """A position to come back to."""

    pos: int
    line: int
    line_start: int
    indent: int
    first_tab: int


class Cursor:
    """A text and a place in it. Moves forward only, but for :meth:`back_to`."""

    def __init__(self, text: str) -> None:
        self.length = len(text)
        self.text = text + _PADDING
        self.pos = 0
        self.line = 0
        self.line_start = 0
        self.indent = 0
        """Spaces in front of the present line's content."""
        self.first_tab = -1
        """Where the present line has its first tab outside of scalars, or -1."""

    @property
    def char(self) -> str:
        """The character here; ``END`` behind the last one."""
        return self.text[self.pos]

    @property
    def following(self) -> str:
        """The character after this one."""
        return self.text[self.pos + 1]

    @property
    def at_end(self) -> bool:
        """Whether everything was read."""
        return self.pos >= self.length

    def fail(self, message: str) -> NoReturn:
        """Raise YamlError for this place."""
        raise YamlError(message, self.line)

    def place(self) -> Place:
        """The present place, for :meth:`back_to`."""
        return Place(self.pos, self.line, self.line_start, self.indent, self.first_tab)

    def back_to(self, place: Place) -> None:
        """Return to a place seen before."""
        self.pos, self.line, self.line_start, self.indent, self.first_tab = place

    def column_of_spaces(self) -> int:
        """How many spaces follow here, without moving."""
        return _end(_SPACES, self.text, self.pos) - self.pos

    def skip_blanks(self) -> bool:
        """Pass spaces and tabs of this line; whether there were any."""
        start = self.pos
        self.pos = _end(_BLANKS, self.text, start)
        return self.pos > start

    def skip_line(self) -> None:
        """Pass everything up to the line break."""
        self.pos = _end(_TO_LINE_END, self.text, self.pos)

    def skip_break(self) -> None:
        """Pass one line break: LF, CR or both."""
        both = self.char == "\r" and self.following == "\n"
        self.pos += 2 if both else 1
        self.line += 1
        self.line_start = self.pos
        self.indent = 0
        self.first_tab = -1

    def skip_space(self, comments: bool = True) -> int:
        """Pass blanks, line breaks and (if wanted) comments. Returns the number of line breaks."""
        breaks = 0
        separated = self.pos == self.line_start or self.text[self.pos - 1] in SPACE
        while True:
            start = self.pos
            separated = self.skip_blanks() or separated
            if self.first_tab == -1:
                self.first_tab = self.text.find("\t", start, self.pos)
            if comments and separated and self.char == "#":
                self.skip_line()
            if self.char not in EOL:
                return breaks
            self.skip_break()
            breaks += 1
            separated = True
            self.indent = self.column_of_spaces()
            self.pos += self.indent

    def skip_bom(self) -> None:
        """Pass a byte order mark in front of a document."""
        if self.pos == self.line_start and self.char == BOM:
            self.pos += 1
            self.line_start = self.pos

    def at_separator(self) -> bool:
        """Whether ``---`` or ``...`` stands here with nothing glued to it."""
        return (
            self.text[self.pos : self.pos + 3] in ("---", "...") and self.text[self.pos + 3] in SPACE_OR_END
        )

    def at_boundary(self) -> bool:
        """Whether the document ends here, at the beginning of a line."""
        if self.pos != self.line_start:
            return False
        if self.at_separator():
            return True
        return self.char == BOM and self._bom_begins_document()

    def _bom_begins_document(self) -> bool:
        place = self.place()
        self.skip_bom()
        self.skip_space()
        begins = self.pos == self.line_start and (
            self.char == "%" or (self.char == "-" and self.at_separator())
        )
        self.back_to(place)
        return begins


def _end(pattern: "re.Pattern[str]", text: str, pos: int) -> int:
    """Where a pattern that matches anywhere, if only the empty string, ends."""
    match = pattern.match(text, pos)
    assert match is not None
    return match.end()
