"""Clients that stand alone: from a checkout, from the archive, and through shiv's own start-up."""

import hashlib
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Dict, List

import pytest

from adapters.client import bundle
from tests.adapters.client.node import node_program
from tests.conftest import ROOT, RunAs

CLIENTS = sorted(path.parent.name for path in (ROOT / "adapters").glob("*/client.js"))

SHARED = """\
// Shared.
import net from "node:net";

export const LIMIT = 3;
export async function ask() {}
export class Publisher {}
function inner() { return "export const no = 1"; }
"""
CLIENT = """\
// Head.
import os from "node:os";
import { ask, Publisher } from "../client/companion.js";

export default function (pi) { ask(os, Publisher); }
"""


def test_the_shared_part_stands_where_it_was_imported() -> None:
    """Comments stay, nothing of it is exported, and what only looks like an export is left alone."""
    text = bundle.bundled(CLIENT, SHARED)
    assert text.startswith("// Head.\n")
    assert "companion.js" not in text
    assert re.findall(r"^export .*", text, re.MULTILINE) == [
        "export default function (pi) { ask(os, Publisher); }"
    ]
    assert "// Shared.\n" in text and '"export const no = 1"' in text
    assert text.count("import ") == 2


def test_a_client_that_stands_alone_stays_as_it_is() -> None:
    """Bundling a second time changes nothing."""
    once = bundle.bundled(CLIENT, SHARED)
    assert bundle.bundled(once, SHARED) == once


@pytest.mark.parametrize("agent", CLIENTS)
def test_each_client_is_a_module_without_imports_of_ours(agent: str, tmp_path: Path, run: RunAs) -> None:
    """node takes it, it asks for nothing but what node brings, and a second reading is the same."""
    source = bundle.client_source(agent)
    module = tmp_path / "client.mjs"
    module.write_bytes(source)
    done = run([node_program(), "--check", str(module)])
    assert (done.returncode, done.stderr) == (0, "")
    imported = re.findall(r'^import .*? from "(.*?)";$', source.decode(), re.MULTILINE)
    assert imported and all(name.startswith("node:") for name in imported)
    assert not re.search(r"\b(?:import|require)\(", source.decode())
    assert bundle.client_source(agent) == source


@pytest.mark.parametrize("agent", CLIENTS)
def test_each_client_is_small_enough_to_read(agent: str) -> None:
    """In one sitting, comments included."""
    source = bundle.client_source(agent).decode()
    assert len(source.splitlines()) <= 750
    assert max(map(len, source.splitlines())) <= 120


def test_an_agent_without_a_client_has_none() -> None:
    """An OSError, as of any file that is not there."""
    with pytest.raises(OSError):
        bundle.client_source("claude")


def digests(agents: List[str]) -> Dict[str, str]:
    """What every way to a client must give."""
    return {agent: hashlib.sha256(bundle.client_source(agent)).hexdigest() for agent in agents}


ASK = """\
import hashlib, json, sys
from adapters.client.bundle import client_source
print(json.dumps({a: hashlib.sha256(client_source(a)).hexdigest() for a in sys.argv[1:]}))
"""


def test_the_archive_holds_the_clients_ready_made(pyz: Path) -> None:
    """Byte for byte what a checkout makes, and no shared file beside them."""
    with zipfile.ZipFile(pyz) as archive:
        names = [name for name in archive.namelist() if name.endswith(".js")]
        assert names == [f"site-packages/adapters/{agent}/client.js" for agent in CLIENTS]
        for name, agent in zip(names, CLIENTS):
            assert archive.read(name) == bundle.client_source(agent)


def test_the_archive_s_own_finder_gives_them(pyz: Path, tmp_path: Path, run: RunAs) -> None:
    """Compiled modules and packed data, without anything being unpacked; from any folder."""
    program = (
        "import sys, zipimport\n"
        f"here = {str(pyz)!r}\n"
        "sys.path.insert(0, here + '/site-packages')\n"
        "from companion.archive.start import ArchiveFinder\n"
        "sys.meta_path.insert(0, ArchiveFinder(here, {}))\n"
        "for name in [n for n in sys.modules if n.split('.')[0] in ('adapters', 'companion')]:\n"
        "    del sys.modules[name]\n"
        f"{ASK}"
        "from adapters.client import bundle\n"
        "assert type(bundle.__spec__.loader).__name__ == 'ArchiveFinder'\n"
    )
    done = run([sys.executable, "-S", "-c", program, *CLIENTS], cwd=tmp_path)
    assert json.loads(done.stdout or "null") == digests(CLIENTS), done.stderr


def test_shiv_s_start_up_gives_them(
    pyz: Path, clean_environ: Dict[str, str], tmp_path: Path, run: RunAs
) -> None:
    """Unpacked into shiv's folder, and imported from there."""
    asking = tmp_path / "ask.py"
    asking.write_text(ASK)
    environ = {**clean_environ, "SHIV_ROOT": str(tmp_path / "shiv"), "SHIV_INTERPRETER": "1"}
    done = run([sys.executable, str(pyz), str(asking), *CLIENTS], env=environ)
    assert json.loads(done.stdout or "null") == digests(CLIENTS), done.stderr


def test_a_checkout_needs_no_build(tmp_path: Path) -> None:
    """The sources alone give the same."""
    done = subprocess.run(
        [sys.executable, "-S", "-c", ASK, *CLIENTS], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == digests(CLIENTS)
