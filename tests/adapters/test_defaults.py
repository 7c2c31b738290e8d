"""The ready answers, as a module that satisfies the contract."""

import textwrap
from pathlib import Path
from typing import Dict, Set

import pytest

from adapters import defaults
from adapters.contract import Adapter, AdapterError, InstallContext, Integration, ReadReport

CONTEXT = InstallContext(
    home=Path("/home/dev"),
    environ={},
    endpoint="http://127.0.0.1:51618",
    program=Path("/opt/mdello.pyz"),
    interpreter="/usr/bin/python3",
)


class Nothing:
    """What an agent that can do nothing would assign; a type checker holds it to the contract."""

    NAME = "nothing"
    TITLE = "Nothing"
    EVENTS = defaults.no_events
    ENVIRONMENT = defaults.no_environment
    KNOWN_BY_FILE = defaults.known_by_id
    session_of = staticmethod(defaults.no_session_of)
    translate = staticmethod(defaults.no_translate)
    records_root = staticmethod(defaults.no_records_root)
    folders_of = staticmethod(defaults.no_folders)
    read_record = staticmethod(defaults.no_read_record)
    session_file = staticmethod(defaults.no_session_file)
    read_tail = staticmethod(defaults.no_read_tail)
    sessions_root = staticmethod(defaults.no_sessions_root)
    session_files = staticmethod(defaults.no_session_files)
    read_session = staticmethod(defaults.no_read_session)
    read_sessions = staticmethod(defaults.no_read_sessions)
    presence = staticmethod(defaults.no_presence)
    install = staticmethod(defaults.no_install)
    uninstall = staticmethod(defaults.no_install)
    inspect = staticmethod(defaults.no_inspect)


AGENT: Adapter = Nothing()


def test_no_payload_means_anything() -> None:
    """Hooks of an agent without hooks are unknown, not an error."""
    assert AGENT.EVENTS == ()
    assert AGENT.ENVIRONMENT == ()
    assert AGENT.KNOWN_BY_FILE is False
    assert AGENT.session_of({"session_id": "s"}) == ""
    translation = AGENT.translate({"hook_event_name": "Stop"}, None)
    assert (translation.known, translation.event, translation.state) == (False, None, None)


def test_there_are_no_processes_and_no_ends(tmp_path: Path) -> None:
    """Of an agent that keeps none."""
    assert AGENT.records_root(tmp_path, {}) is None
    assert AGENT.folders_of(tmp_path / "s.jsonl") is None
    assert AGENT.read_record(tmp_path / "1.json") is None
    assert AGENT.session_file(tmp_path, "s") is None
    assert AGENT.read_tail(tmp_path / "s.jsonl", "s") is None


def test_there_is_no_history() -> None:
    """No files are found, and one that is forced on it is told as left out."""
    report = ReadReport()
    root = AGENT.sessions_root(Path("/home/dev"), {})
    assert list(AGENT.session_files(root, 0.0, report)) == []
    session = AGENT.read_session(Path("/x.jsonl"), (), None, report)
    assert (session.session_id, session.card_paths) == ("", ())
    assert [path for path, _ in report.skipped] == ["/x.jsonl"]
    assert list(AGENT.read_sessions(Path("/x.jsonl"), (), 0.0, report)) == []


def test_installing_is_refused_with_a_reason() -> None:
    """Install and uninstall say that there is nothing; looking says it is absent."""
    assert AGENT.presence(CONTEXT) is None
    for act in (AGENT.install, AGENT.uninstall):
        with pytest.raises(AdapterError, match="no integration"):
            act(CONTEXT)
    assert AGENT.inspect(CONTEXT).state == "absent"


def test_every_name_of_the_contract_has_an_answer() -> None:
    """A name that the contract gains needs a ready answer too."""
    wanted: Set[str] = set()
    for protocol in (Integration, Adapter):
        wanted |= {name for name in vars(protocol) if not name.startswith("_")}
        wanted |= set(protocol.__annotations__)
    assert wanted == {name for name in vars(Nothing) if not name.startswith("_")}


def test_the_documented_example_lacks_only_what_it_says() -> None:
    """Its names and its history: who follows it has a whole adapter."""
    names: Dict[str, object] = {}
    exec(textwrap.dedent(str(defaults.__doc__).split("::", 1)[1]), names)
    own = {"NAME", "TITLE", "sessions_root", "session_files", "read_session", "read_sessions"}
    offered = {name for name in names if not name.startswith("_")} - {"defaults"}
    assert offered == {name for name in vars(Nothing) if not name.startswith("_")} - own
    assert names["install"] is names["uninstall"] is defaults.no_install
