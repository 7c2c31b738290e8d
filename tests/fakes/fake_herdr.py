"""A small herdr: lists what a file says, notes each call, and misbehaves when told to.

In a test, ``FakeHerdr(folder)`` makes the program (``path``); what it answers may be changed while
others call it.
"""

import json
import sys
import time
from pathlib import Path
from typing import Dict, List, Optional

_STEP_S = 0.005


class FakeHerdr:
    """The program's files, and what stands in them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.path = folder / "herdr"
        """The program."""
        # Found by PATH too; its own environment may be empty.
        self.path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "{__file__}" "{folder}" "$@"\n')
        self.path.chmod(0o755)
        self.agents: List[Dict[str, object]] = []
        self.tabs: List[Dict[str, object]] = []
        self.workspaces: List[Dict[str, object]] = []
        self.modes: Dict[str, str] = {}
        """By command (``agent list``) or its first word: ``hang``, ``fail``, ``garbage``, or
        ``wait`` (until :meth:`go_on`)."""
        self.save()

    def save(self) -> None:
        """Let the program answer with what stands here now."""
        state = {
            "agents": self.agents,
            "tabs": self.tabs,
            "workspaces": self.workspaces,
            "modes": self.modes,
        }
        beside = self.folder / "state.new"
        beside.write_text(json.dumps(state))
        beside.replace(self.folder / "state.json")

    def run_session(self, session: str, workspace: str = "Shop", tab: str = "Basket") -> str:
        """A session in a pane of its own; the pane's id."""
        number = len(self.agents) + 1
        place = {"tab_id": f"w{number}:t1", "workspace_id": f"w{number}"}
        pane = f"w{number}:p1"
        self.agents.append({"agent_session": {"value": session}, "pane_id": pane, **place})
        self.tabs.append({"tab_id": place["tab_id"], "label": tab})
        self.workspaces.append({"workspace_id": place["workspace_id"], "label": workspace})
        self.save()
        return pane

    def misbehave(self, **modes: str) -> None:
        """From now on; no modes: behave. ``agent_list`` means the command ``agent list``."""
        self.modes = {name.replace("_", " "): mode for name, mode in modes.items()}
        self.save()

    def go_on(self) -> None:
        """Let those that wait answer, and all that follow."""
        (self.folder / "go").write_text("")

    def calls(self) -> List[str]:
        """The arguments of every call so far, in the order in which they began."""
        try:
            return (self.folder / "calls").read_text().splitlines()
        except FileNotFoundError:
            return []

    def syncs(self) -> float:
        """How many times all three lists were asked for; a fraction while that goes on."""
        return len([call for call in self.calls() if call.endswith(" list")]) / 3


def main(folder: Path, arguments: List[str]) -> int:
    """Be herdr."""
    command = " ".join(arguments)
    with (folder / "calls").open("a") as calls:
        calls.write(command + "\n")
    state = json.loads((folder / "state.json").read_text())
    modes = state["modes"]
    mode: Optional[str] = modes.get(" ".join(arguments[:2]), modes.get(arguments[0]))
    while mode == "hang" or (mode == "wait" and not (folder / "go").exists()):
        time.sleep(_STEP_S)
    if mode == "fail":
        print("Error: no server is running", file=sys.stderr)
        return 1
    if mode == "garbage":
        print("agents: none, I think")
    elif arguments[1] == "list":
        kind = f"{arguments[0]}s"
        print(json.dumps({"id": "cli:list", "result": {"type": kind, kind: state[kind]}}))
    else:
        print(json.dumps({"id": "cli:focus", "result": {}}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1]), sys.argv[2:]))
