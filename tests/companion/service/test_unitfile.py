"""Values in unit files, against a reader of systemd's rules that knows nothing of the writer."""

from typing import List

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.contract import AdapterError
from companion.service import unitfile
from tests.companion.service.conftest import ODD_NAMES
from tests.fakes import supervisor

PIECES = ("$$", "${HOME}", "$HOME", "%%", "%h", "\\", '"', "'", ";", " ", "{}")
PATHS = st.lists(
    st.characters(exclude_categories=("Cs", "Cc")) | st.sampled_from(PIECES), min_size=1, max_size=20
).map(lambda pieces: "/" + "".join(pieces))


def read(command: str, *assignments: str) -> "supervisor.Unit":
    """What systemd makes of it."""
    lines = ["[Service]", f"ExecStart={command}", *(f"Environment={each}" for each in assignments), ""]
    return supervisor.read_service("\n".join(lines))


@given(PATHS, st.lists(PATHS, max_size=3))
def test_a_command_comes_out_as_it_went_in(program: str, arguments: List[str]) -> None:
    """Whatever is in the names; a program that systemd would refuse goes through a shell."""
    written = unitfile.command([program, *arguments])
    started = read(written).argv
    if started[0] == "/bin/sh" and program != "/bin/sh":
        assert started[:4] == ["/bin/sh", "-c", 'exec "$@"', "sh"]
        started = started[4:]
    assert started == [program, *arguments]
    assert unitfile.command_in(f"[Service]\nExecStart={written}\n") == [program, *arguments]


@given(PATHS)
def test_a_variable_comes_out_as_it_went_in(value: str) -> None:
    """Here a dollar sign means nothing."""
    written = unitfile.assignment("NAME", value)
    assert read('"/bin/true"', written).environment == {"NAME": value}
    assert unitfile.environment_in(f"[Service]\nEnvironment={written}\n") == [("NAME", value)]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_only_odd_programs_go_through_a_shell(name: str) -> None:
    """The interpreter is started directly wherever systemd can."""
    started = read(unitfile.command([f"/x/{name}/python", "y"])).argv
    assert (started[0] == "/bin/sh") == bool(set("\"'\\$") & set(name))


@pytest.mark.parametrize("name", ["new\nline", "\x7f", "tab\t", "\udcff"])
def test_what_no_unit_can_hold_is_refused(name: str) -> None:
    """A line break would begin a setting of somebody else's choosing."""
    with pytest.raises(AdapterError):
        unitfile.command(["/bin/true", f"/{name}"])
    with pytest.raises(AdapterError):
        unitfile.assignment("HOME", f"/{name}")


def test_foreign_text_is_no_error() -> None:
    """Other settings, other ways to quote, nothing at all."""
    for text in ("", "[Service]\nExecStart=/bin/true\nEnvironment=A=b 'C=d'\n", "ExecStart\n\0=\n"):
        assert unitfile.command_in(text) == []
        assert unitfile.environment_in(text) == []
