"""How systemd reads a unit file, and how a value has to be written so that it comes out the same.

The rules, from systemd.syntax(7), systemd.service(5), systemd.exec(5), systemd.unit(5):

- A line is ``Key=value``. A backslash at its end joins it with the next one; ``#`` and ``;`` at its
  beginning make a comment. It must be UTF-8.
- Where quoting is allowed, ``"..."`` and ``'...'`` hold one item if the quotes stand around all of
  it; within, a backslash begins an escape as in C (``\\\\``, ``\\"``), and an unknown one is an error.
- ``%`` begins a specifier everywhere; ``%%`` is a percent sign.
- In ``ExecStart=``, ``$NAME`` and ``${NAME}`` are replaced, within quotes too; ``$$`` is a dollar
  sign. A ``;`` that stands alone, without quotes, separates commands.
- The first item of ``ExecStart=`` is the program. In it ``$`` is an ordinary character and must not
  be doubled, while the same item as the program's name (argv[0]) is searched for variables. Quotes,
  backslashes and control characters are refused there, however they are written.
- In ``Environment=``, ``$`` is an ordinary character. Control characters are refused.

So each item is put between double quotes. A program whose path systemd would refuse or change is
started by ``/bin/sh``, which then becomes that program and keeps its process number.
"""

import re
from typing import Iterable, List, Tuple

from adapters.contract import AdapterError

_CONTROL = re.compile("[\x00-\x1f\x7f]")
_UNSAFE_PROGRAM = re.compile("[\"'\\\\$]")
_THROUGH_SHELL = ("/bin/sh", "-c", 'exec "$@"', "sh")
_ITEM = re.compile(r'"((?:[^"\\]|\\.)*)"')


def command(words: Iterable[str]) -> str:
    """A value for ``ExecStart=``: an absolute path, and arguments. AdapterError for control characters."""
    program, *arguments = words
    if _UNSAFE_PROGRAM.search(program):
        program, *arguments = (*_THROUGH_SHELL, program, *arguments)
    return " ".join([_quoted(program), *(_quoted(each).replace("$", "$$") for each in arguments)])


def assignment(name: str, value: str) -> str:
    """A value for ``Environment=``. AdapterError for control characters."""
    return _quoted(f"{name}={value}")


def command_in(text: str) -> List[str]:
    """What :func:`command` was given, from a whole unit file; empty when there is no such line."""
    words = [item.replace("$$", "$") for item in _items(text, "ExecStart")]
    shell = len(_THROUGH_SHELL)
    return words[shell:] if tuple(words[:shell]) == _THROUGH_SHELL else words


def environment_in(text: str) -> List[Tuple[str, str]]:
    """The assignments in a unit file that :func:`assignment` has written, in order."""
    parts = [item.partition("=") for item in _items(text, "Environment")]
    return [(name, value) for name, _, value in parts]


def _quoted(text: str) -> str:
    if _CONTROL.search(text):
        raise AdapterError(f"systemd can start nothing that has a control character in its path: {text!r}")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise AdapterError(f"systemd can start nothing whose path is not UTF-8: {text!r}") from None
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


def _items(text: str, key: str) -> List[str]:
    found: List[str] = []
    for line in text.split("\n"):
        if line.startswith(key + "="):
            found += _ITEM.findall(line)
    return [re.sub(r"\\(.)", r"\1", item).replace("%%", "%") for item in found]
