"""What adapters remember: saved on change, bounded, restored."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Callable, Dict, List, Optional

import pytest

from adapters.contract import Status
from companion.sessions import hookstates as hookstates_module
from companion.sessions.hookstates import MAX_STATE_BYTES, HookStates

REPOSITORY = Path(__file__).parents[3]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Where the states are kept."""
    return tmp_path / "hooks.jsonl"


def _lines(log: Path) -> List[Dict[str, object]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


def _state(states: HookStates, session: str) -> Optional[Dict[str, object]]:
    found = states.get("claude", session)
    return found.session_state() if found is not None else None


def _wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_states_come_back_after_a_restart(log: Path) -> None:
    """State, status and time; of each agent its own."""
    states = HookStates(log)
    states.put("claude", "s", {"phase": "running", "open": ["t1"]}, Status.WAITING_FOR_INPUT, "2026")
    states.put("codex", "s", None, Status.IDLE, "2027")
    states.close()
    again = HookStates(log)
    again.load()
    found = again.get("claude", "s")
    assert found is not None
    assert (found.session_state(), found.status, found.updated_at) == (
        {"phase": "running", "open": ["t1"]},
        Status.WAITING_FOR_INPUT,
        "2026",
    )
    other = again.get("codex", "s")
    assert other is not None and other.session_state() is None and other.status is Status.IDLE
    assert again.get("claude", "unseen") is None
    assert (again.count("claude"), again.count("pi")) == (1, 0)


def test_only_changes_are_written(log: Path) -> None:
    """None leaves what was there."""
    states = HookStates(log)
    states.put("claude", "s", {"a": 1}, Status.RUNNING, "1")
    states.put("claude", "s", {"a": 1}, None, "2")
    states.put("claude", "s", None, Status.RUNNING, "3")
    assert len(_lines(log)) == 1
    states.put("claude", "s", {"a": 2}, None, "4")
    states.put("claude", "s", None, Status.CLOSED, "5")
    assert [(each["state"], each["status"]) for each in _lines(log)] == [
        ({"a": 1}, "running"),
        ({"a": 2}, "running"),
        ({"a": 2}, "closed"),
    ]


def test_a_state_is_handed_out_as_a_copy(log: Path) -> None:
    """An adapter that changes it in place changes nothing here."""
    states = HookStates(log)
    states.put("claude", "s", {"open": []}, None, "1")
    mine = _state(states, "s")
    assert mine is not None
    mine["open"] = "spoiled"
    assert _state(states, "s") == {"open": []}


@pytest.mark.parametrize("state", [{"x": "y" * MAX_STATE_BYTES}, {"x": {1, 2}}, {"x": object()}])
def test_a_state_that_cannot_be_kept_is_dropped_and_counted(log: Path, state: Dict[str, object]) -> None:
    """The session counts as unseen; its status is kept."""
    states = HookStates(log)
    states.put("claude", "s", {"a": 1}, None, "1")
    states.put("claude", "s", state, Status.RUNNING, "2")
    found = states.get("claude", "s")
    assert found is not None and found.session_state() is None and found.status is Status.RUNNING
    assert states.oversized == 1


def test_closed_sessions_are_forgotten_first_then_the_oldest(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each agent has its own bound; a restart finds the same sessions."""
    monkeypatch.setattr(hookstates_module, "MAX_SESSIONS", 3)
    states = HookStates(log)
    for session, status in [("a", Status.IDLE), ("b", Status.CLOSED), ("c", Status.RUNNING)]:
        states.put("claude", session, {"n": session}, status, "1")
        states.put("codex", session, {"n": session}, status, "1")
    states.put("claude", "a", {"n": "again"}, None, "2")
    states.put("claude", "d", {"n": "d"}, Status.CLOSED, "3")
    states.put("claude", "e", {"n": "e"}, Status.IDLE, "4")
    states.put("claude", "f", {"n": "f"}, Status.IDLE, "5")

    def known(found: HookStates) -> List[str]:
        return [session for session in "abcdef" if found.get("claude", session)]

    assert known(states) == ["a", "e", "f"]
    assert states.count("codex") == 3
    states.close()
    again = HookStates(log)
    again.load()
    assert known(again) == ["a", "e", "f"]


def test_states_are_bounded_in_bytes_too(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An adapter that errs cannot eat the memory."""
    monkeypatch.setattr(hookstates_module, "MAX_TOTAL_BYTES", 1000)
    states = HookStates(log)
    for number in range(20):
        states.put("claude", f"s{number}", {"x": "y" * 200}, None, "1")
        states.put("claude", f"s{number}", {"x": "z" * 210}, None, "2")
    assert states.count("claude") == 4


def test_the_log_does_not_grow_for_ever(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rewritten now and then with one line per session."""
    monkeypatch.setattr(hookstates_module, "MAX_SESSIONS", 5)
    states = HookStates(log, shorten_after_s=0.001)
    for number in range(200):
        states.put("claude", f"s{number % 3}", {"n": number}, None, "1")
    _wait_for(lambda: len(_lines(log)) <= 2 * 3 + 5 + 1)
    assert len(_lines(log)) <= 2 * 3 + 5 + 1
    states.close()
    again = HookStates(log)
    again.load()
    assert _state(again, "s1") == {"n": 199}


def test_nobody_waits_for_the_disk_while_the_log_is_shortened(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With an fsync that does not come back states are put and got, and none of them is lost."""
    monkeypatch.setattr(hookstates_module, "MAX_SESSIONS", 5)
    syncing, go_on = threading.Event(), threading.Event()
    fsync = os.fsync

    def slow(fd: int) -> None:
        syncing.set()
        assert go_on.wait(30)
        fsync(fd)

    monkeypatch.setattr(os, "fsync", slow)
    states = HookStates(log, shorten_after_s=0.001)
    for number in range(20):
        states.put("claude", f"s{number % 3}", {"n": number}, None, "1")
    assert syncing.wait(30)
    states.put("claude", "s1", {"n": "meanwhile"}, Status.IDLE, "2")
    states.put("claude", "new", {"n": "meanwhile"}, None, "2")
    assert _state(states, "new") == {"n": "meanwhile"} and len(_lines(log)) == 22
    go_on.set()
    _wait_for(lambda: len(_lines(log)) < 22)
    states.put("claude", "s2", {"n": "after"}, None, "3")
    states.close()
    again = HookStates(log)
    again.load()
    found = [_state(again, session) for session in ("s0", "s1", "s2", "new")]
    assert found == [{"n": 18}, {"n": "meanwhile"}, {"n": "after"}, {"n": "meanwhile"}]


def test_a_log_that_others_emptied_is_shortened_all_the_same(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A purge beside us replaces it; memory is what counts."""
    monkeypatch.setattr(hookstates_module, "MAX_SESSIONS", 5)
    states = HookStates(log, shorten_after_s=0.001)
    states.put("claude", "kept", {"a": 1}, None, "1")
    log.unlink()
    for number in range(30):
        states.put("claude", f"s{number % 2}", {"n": number}, None, "1")

    def shortened() -> bool:  # For the last time: the first may have been amid the calls.
        names = [each["sessionId"] for each in _lines(log)]
        return "kept" in names and len(names) <= 2 * 3 + 5 + 1

    _wait_for(shortened)
    states.close()


def test_states_put_by_many_threads_survive_every_shortening(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log of a restart agrees with memory."""
    monkeypatch.setattr(hookstates_module, "MAX_SESSIONS", 40)
    states = HookStates(log, shorten_after_s=0.0)

    def work(worker: int) -> None:
        for number in range(300):
            states.put("claude", f"{worker}-{number % 7}", {"n": number}, None, str(number))

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    _wait_for(lambda: len(_lines(log)) <= 2 * 28 + 40)
    states.close()
    again = HookStates(log)
    again.load()
    expected = {f"{w}-{n % 7}": {"n": n} for w in range(4) for n in range(293, 300)}
    assert {session: _state(again, session) for session in expected} == expected


_CRASHING = """
import sys
from pathlib import Path
from companion.sessions import hookstates

hookstates.MAX_SESSIONS = 10
states = hookstates.HookStates(Path(sys.argv[1]), shorten_after_s=0.0)
number = 0
while True:
    states.put("claude", "s%d" % (number % 5), {"n": number, "text": "x" * 500}, None, "1")
    print(number, flush=True)
    number += 1
"""


@pytest.mark.parametrize("seed", range(5))
def test_kill_minus_nine_while_shortening_loses_no_state(log: Path, seed: int) -> None:
    """Every state that was acknowledged, or a later one of its session, is found again."""
    child = subprocess.Popen(
        [sys.executable, "-c", _CRASHING, str(log)], cwd=REPOSITORY, stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    for line in child.stdout:
        if int(line) == 200 + seed * 150:
            time.sleep(0.0007 * seed)
            child.send_signal(signal.SIGKILL)
            break
    last = max([int(line) for line in child.stdout.read().split()] or [200 + seed * 150])
    child.stdout.close()
    assert child.wait(30) == -signal.SIGKILL
    again = HookStates(log)
    again.load()
    for number in range(last - 4, last + 1):
        state = _state(again, f"s{number % 5}")
        assert state is not None
        found = state["n"]
        assert isinstance(found, int) and found >= number


def test_odd_lines_are_skipped(log: Path) -> None:
    """Junk, a state that is no object, a record without session."""
    good = {
        "harness": "claude",
        "sessionId": "s",
        "state": {"a": 1},
        "status": "new status",
        "updatedAt": "1",
    }
    bad = [{**good, "state": [1]}, {**good, "sessionId": ""}, {**good, "harness": 5}, [], None]
    log.write_text("junk\n" + "".join(json.dumps(each) + "\n" for each in [*bad, good]))
    states = HookStates(log)
    states.load()
    found = states.get("claude", "s")
    assert found is not None and found.session_state() == {"a": 1} and found.status is None


def test_an_unusable_log_is_told_and_costs_nothing_else(log: Path) -> None:
    """States are then kept in memory."""
    log.mkdir()
    states = HookStates(log)
    states.load()
    states.put("claude", "s", {"a": 1}, None, "1")
    assert states.problem is not None
    assert _state(states, "s") == {"a": 1}
    states.close()
