"""Makes YAML texts and cards: heads as people and agents write them, and what breaks them."""

from random import Random

TOKENS = [
    *["\n", "\n", "\n", " ", "  ", "    ", "\t", "\r\n", "\r", "\n  ", "\n- ", "\n  - ", "\n    ", "\n\n"],
    *["- ", "-", "? ", ":", ": ", ",", "[", "]", "{", "}", "#", " # c", "#c\n", "=", "'", '"', "''"],
    *["&a ", "*a", "&b", "*b", "!!str ", "!!int ", "!foo ", "! ", "!!map", "!!seq ", "!!null ", "!!float "],
    *["!!bool ", "!<tag:yaml.org,2002:str> ", "!!s%74r ", "!e!foo ", "%YAML 1.2\n", "%TAG !e! tag:x,2000:\n"],
    *["|", "|-\n", ">", "> \n", "|2\n", ">+\n", "|\n  x\n", "\\n", "\\", "\\u00e9", "\\ud83d\\ude00", "\\x4"],
    *["%", "@", "`", "a", "b", "c", "uuid", "title", "uuid: x\n", "title: y\n", "key: ", "word word"],
    *["\u00e9", "\U0001f600", "\ufeff", "\u00a0", "\u2028", "\x07", "\x7f", "\x85", "<<", "__proto__"],
    *["---", "...", "---\n", "...\n", "---\nuuid: z\n", "a: b", "? a\n: b\n", "[a, b]", "{a: b}", '"x": 1'],
    *["1", "0x1f", "0o17", "1e3", ".5", ".inf", "true", "null", "~", "0123", "+12", "-", "1_000", "'x': "],
    *["2024-01-01", "12:30:45", "123e4567", "0b11", "yes", "-0", "1e400", "9" * 400, "1e21", "\\UFFFFFFFF"],
]

HEADS = [
    "uuid: 6f1c6e1e-7a3b-4f7e-9d0a-0a1b2c3d4e5f\ntitle: Mend the garden gate\ncolumn: In progress\n"
    "tags:\n  - wood\n  - outside\ncreated: 2026-01-02T10:00:00.000Z\norder: 3\n",
    "uuid: 'abc'\ntitle: \"Quoted: title\"\ntags: [a, \"b\", 'c']\nattachments:\n- file: a.png\n  name: A\n"
    "  type: image/png\n- {file: b, name: c}\norder: 1.5\n",
    "# comment\ntitle: >-\n  a long\n  folded title\n\n  in two parts\nuuid: &id abc-def\ncolumn: *id\n"
    "assignee: ~\n",
    "sessionAssociations:\n  - harness: claude\n    sessionId: x-1\n    status: closed\n"
    "    updatedAt: '2026-01-01'\nuuid: !!str 123\ntitle: |\n  text\n   more\n  end\n",
    '{"uuid": "abc", "title": "x", "tags": [1, 2]}\n',
    "? uuid\n: abc\n? title\n: several\n  lines\n  plain\n"
    "column:\n- a\n- - b\n  - c\n-\n  d: e\n  f:\n    g: h\n",
    'defaults: &d\n  a: 1\n  b: 2\nuuid: x\nmore:\n  <<: *d\n  c: !!int "3"\n',
    "uuid:\n  abc\n   def\ntitle: 'it''s\n  folded'\nother: \"a\\\n  b \\\n\n  c\"\n",
]

_OPENINGS = ["---\n"] * 8 + ["---\r\n", "--- \n", "\ufeff---\n", "\n---\n", "---\r", "----\n", "---\n---\n"]
_OPENINGS += ["---\n\n", "---\r\n---\r\n", ""]
_CLOSINGS = ["\n---\n"] * 6 + ["\r\n---\r\n", "\n----\n", "\n---", "\n--- x\n", "\r---\n", "\n--\n", "---\n"]
_CLOSINGS += ["\n ---\n", ""]
_BODIES = ["body", "", "\n\n# Title\n---\nuuid: other\n---\n"]


def text(random: Random) -> str:
    """A YAML text: tokens by chance, or a head with a few changes."""
    kind = random.random()
    if kind < 0.35:
        return "".join(random.choice(TOKENS) for _ in range(random.randint(1, 14)))
    made = random.choice(HEADS)
    if kind < 0.5:
        made = made.replace("\n", "\r\n")
    for _ in range(random.randint(1, 4)):
        made = _changed(random, made)
    return made


def _changed(random: Random, made: str) -> str:
    at, kind = random.randint(0, len(made)), random.random()
    if kind < 0.5:
        return made[:at] + random.choice(TOKENS) + made[at:]
    if kind < 0.7:
        return made[:at] + made[at + random.randint(1, 6) :]
    if kind < 0.8:
        return made[:at]
    if kind < 0.9:
        lines = made.split("\n")
        again = " " * random.randint(0, 4) + random.choice(lines)
        lines.insert(random.randint(0, len(lines)), again)
        return "\n".join(lines)
    other = random.choice(HEADS)
    return made[:at] + other[random.randint(0, len(other)) :]


def card(random: Random) -> bytes:
    """A card, its fences often odd and some of its bytes sometimes broken."""
    parts = [random.choice(_OPENINGS), text(random), random.choice(_CLOSINGS), random.choice(_BODIES)]
    made = bytearray("".join(parts).encode("utf-8", "surrogatepass"))
    if made and random.random() < 0.1:
        for _ in range(random.randint(1, 3)):
            made[random.randrange(len(made))] = random.randrange(256)
    return bytes(made)
