"""What every registered adapter promises, whatever the agent."""

import json
from pathlib import Path
from typing import Dict, Optional

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters.contract import InstallContext, ReadReport, Translation
from adapters.defaults import no_session_files
from adapters.registry import ADAPTERS
from tests.adapters.disk import tree_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)

FIELDS = (
    "session_id",
    "tool_name",
    "tool_input",
    "tool_use_id",
    "prompt",
    "source",
    "cwd",
    "transcript_path",
    "agent_id",
    "background_tasks",
    "tool_calls",
    "notification_type",
)

each_adapter = pytest.mark.parametrize("name", sorted(ADAPTERS))
each_hooked = pytest.mark.parametrize("name", sorted(name for name in ADAPTERS if ADAPTERS[name].EVENTS))
each_client = pytest.mark.parametrize("name", sorted(name for name in ADAPTERS if not ADAPTERS[name].EVENTS))
each_reader = pytest.mark.parametrize(
    "name", sorted(name for name in ADAPTERS if ADAPTERS[name].session_files is not no_session_files)
)


def context(home: Path) -> InstallContext:
    program = home.parent / "mdello.pyz"
    program.write_bytes(b"")
    return InstallContext(
        home=home,
        environ={},
        endpoint="http://127.0.0.1:59999",
        program=program,
        interpreter="/usr/bin/python3",
    )


@each_adapter
def test_the_registry_and_the_module_agree_on_the_name(name: str) -> None:
    """The key is what stands in ``/hooks/<name>`` and in every association."""
    adapter = ADAPTERS[name]
    assert name == adapter.NAME
    assert adapter.TITLE
    assert len(set(adapter.EVENTS)) == len(adapter.EVENTS)
    assert all(variable and line for variable, line in adapter.ENVIRONMENT)


@each_hooked
def test_an_unheard_of_event_is_unknown_not_an_error(name: str) -> None:
    """It is counted by whoever asked; the session's memory stays as it was."""
    payload = {"hook_event_name": "BrandNewEvent", "session_id": "s-1", "type": "brand.new"}
    assert ADAPTERS[name].translate(payload, None) == Translation("BrandNewEvent", known=False)


@each_hooked
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_translation_survives_any_payload_and_any_memory(name: str, data: st.DataObject) -> None:
    """Foreign data of any type under the names the adapter looks at."""
    adapter = ADAPTERS[name]
    payload = data.draw(st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=8))
    payload["hook_event_name"] = data.draw(st.sampled_from(adapter.EVENTS) | JSON)
    if data.draw(st.booleans()):
        payload["session_id"] = "s-1"
    memory = st.dictionaries(st.text(max_size=12), JSON, max_size=4)
    drawn = data.draw(st.none() | memory)
    state: Optional[Dict[str, object]] = None if drawn is None else {**drawn}
    translation = adapter.translate(payload, state)
    assert isinstance(adapter.session_of(payload), str)
    assert len(translation.event_name) <= 64
    if translation.state is not None:
        assert len(json.dumps(translation.state)) < 65_536


@each_client
def test_an_agent_without_hooks_understands_no_payload(name: str) -> None:
    """Its client speaks to another route; nothing is remembered for it."""
    payload = {"hook_event_name": "Stop", "session_id": "s-1"}
    assert ADAPTERS[name].translate(payload, None) == Translation("", known=False)
    assert ADAPTERS[name].session_of(payload) == ""


@each_reader
def test_a_missing_session_folder_is_said(name: str, tmp_path: Path) -> None:
    """Nothing found and nothing there are different answers."""
    report = ReadReport()
    root = ADAPTERS[name].sessions_root(tmp_path, {})
    assert list(ADAPTERS[name].session_files(root, 0.0, report)) == []
    assert report.skipped


@each_reader
def test_a_missing_session_file_has_no_cards_and_is_said(name: str, tmp_path: Path) -> None:
    """A session that was never written to disk is normal at its start."""
    report = ReadReport()
    session = ADAPTERS[name].read_session(tmp_path / "gone.jsonl", (), None, report)
    assert session.session_id == "" and session.card_paths == ()
    assert report.skipped


@each_adapter
def test_uninstall_is_the_exact_inverse_of_install(name: str, tmp_path: Path) -> None:
    """Over a home with foreign files, twice, and read back as installed in between."""
    adapter = ADAPTERS[name]
    home = tmp_path / "home of o'neil"
    (home / ".config").mkdir(parents=True)
    (home / ".config" / "foreign.json").write_text('{"keep": true}\n', encoding="utf-8")
    before = tree_of(home)
    for _ in range(2):
        assert adapter.inspect(context(home)).state == "absent"
        first = adapter.install(context(home))
        assert first.changed
        installed = tree_of(home)
        assert adapter.inspect(context(home)).state == "installed"
        second = adapter.install(context(home))
        assert not second.changed and tree_of(home) == installed
        assert adapter.uninstall(context(home)).changed
        assert tree_of(home) == before
    assert not adapter.uninstall(context(home)).changed
