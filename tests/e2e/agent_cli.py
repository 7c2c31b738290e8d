"""Where the real agent CLI comes from: npm, a pinned version, a cache outside the repository.

The platform package is a stand-alone program of some 400 MB, so it is fetched once per machine and
shared by all runs; parallel test workers wait for the one that fetches.
"""

import fcntl
import os
import platform
import pwd
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Dict, Optional

CURRENT = "2.1.332"
"""The version that the tests drive."""
OLDEST = "2.1.197"
"""The oldest version whose plugin loader the generated hooks must satisfy."""

CACHE_VARIABLE = "MDELLO_TEST_CACHE"
NPM_LIMIT_S = 900

_ENVIRON_AT_IMPORT: Dict[str, str] = dict(os.environ)
"""Taken while tests are collected, before any fixture puts the real home out of reach."""


class CliMissing(Exception):
    """The CLI cannot be had here; the text says what is missing."""


def real_home() -> Path:
    """The home of the person who runs the tests, from the account database: HOME may be a test's."""
    return Path(pwd.getpwuid(os.getuid()).pw_dir)


def cache_folder() -> Path:
    """``$MDELLO_TEST_CACHE``, else ``mdello-tests`` below ``$XDG_CACHE_HOME`` or ``~/.cache``."""
    named = _ENVIRON_AT_IMPORT.get(CACHE_VARIABLE)
    if named:
        return Path(named)
    base = _ENVIRON_AT_IMPORT.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else real_home() / ".cache") / "mdello-tests"


def package_name() -> str:
    """The npm package of this platform. CliMissing for one that has none."""
    system = {"Linux": "linux", "Darwin": "darwin"}.get(platform.system())
    machine = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}.get(
        platform.machine().lower()
    )
    if system is None or machine is None:
        raise CliMissing(f"no Claude Code package for {platform.system()} {platform.machine()}")
    musl = "-musl" if system == "linux" and any(Path("/lib").glob("ld-musl-*")) else ""
    return f"@anthropic-ai/claude-code-{system}-{machine}{musl}"


def fetch(version: str) -> Path:
    """The CLI's program file, fetched with npm when the cache lacks it. CliMissing when it cannot be."""
    package = package_name()
    folder = cache_folder() / f"claude-{version}"
    program = folder / "node_modules" / package / "claude"
    if program.exists():
        return program
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"claude-{version}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():  # Another worker may have fetched it while this one waited.
            _install(f"{package}@{version}", folder)
    return program


def _install(spec: str, folder: Path) -> None:
    """Fetch beside the final place, then rename: an interrupted download leaves no half a CLI."""
    beside = Path(tempfile.mkdtemp(prefix=folder.name + ".", dir=folder.parent))
    try:
        _npm_install(spec, beside)
        shutil.rmtree(folder, ignore_errors=True)
        beside.rename(folder)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _npm_install(spec: str, prefix: Path) -> None:
    npm = shutil.which("npm", path=_ENVIRON_AT_IMPORT.get("PATH"))
    if npm is None:
        raise CliMissing("npm is not installed (it fetches the Claude Code CLI)")
    sys.stderr.write(f"\nfetching {spec} (about 400 MB, once) ...\n")
    command = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(prefix), spec]
    environ = {**_ENVIRON_AT_IMPORT, "HOME": str(real_home())}
    try:
        done = subprocess.run(
            command,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=NPM_LIMIT_S,
        )
    except subprocess.TimeoutExpired:
        raise CliMissing(f"npm install {spec} took longer than {NPM_LIMIT_S} s") from None
    if done.returncode != 0:
        raise CliMissing(f"npm install {spec} failed: {_last_line(done.stderr)}")


def _last_line(text: str) -> Optional[str]:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else None
