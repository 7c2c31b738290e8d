"""Lines as other programs may write them, for readers that search bytes."""

import re
from typing import Any

from hypothesis import strategies as st

sampled = st.sampled_from


def written(draw: Any, text: str) -> bytes:
    """One JSON text as a line: its characters spelled in some way, or the line damaged."""
    spelling = draw(st.integers(0, 5))
    if spelling == 0:
        text = text.replace("/", "\\/")
    if spelling == 1:
        text = text.replace("/", draw(sampled(["\\u002f", "\\u002F"])))
    if spelling == 2:
        text = re.sub(r"\\u[0-9a-f]{4}", lambda found: "\\u" + found[0][2:].upper(), text)
    line = text.encode("utf-8", errors="replace")
    damage = draw(st.integers(0, 24))
    if damage == 0:
        line = line[: draw(st.integers(0, len(line)))]
    elif damage == 1:
        line = line + line
    elif damage == 2:
        line = b"\0\0" + line + b"\r"
    elif damage == 3:
        line = b"  " + line + b" "
    elif damage == 4:
        line = line.replace(b"a", b"\xff")
    elif damage == 5:
        line = draw(sampled([b"", b"null", b"[1]", b'"text"', b"\0\0", b"oops", b"\xef\xbb\xbf{}"]))
    return line
