"""Where the real agents come from: npm, pinned versions, a cache outside the repository.

Some are stand-alone programs of hundreds of megabytes, so each is fetched once per machine and
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
"""The version of Claude Code that the tests drive."""
OLDEST = "2.1.197"
"""The oldest version of it whose plugin loader the generated hooks must satisfy."""
PI = "1.6.0"
"""The version of Pi that the tests drive."""
OLD_PI = "0.73.1"
"""The last version of Pi under its old name, which tells less of a run."""
OPENCODE = "1.18.33"
"""The version of OpenCode that the tests drive."""
CODEX = "0.171.0"
"""The version of Codex that the tests drive."""
NODE = "24.21.0"
"""Pi needs a newer Node than many machines have."""

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


def claude_package() -> str:
    """The npm package of Claude Code for this platform. CliMissing when there is none."""
    system = {"Linux": "linux", "Darwin": "darwin"}.get(platform.system())
    machine = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}.get(
        platform.machine().lower()
    )
    if system is None or machine is None:
        raise CliMissing(f"no Claude Code package for {platform.system()} {platform.machine()}")
    musl = "-musl" if system == "linux" and any(Path("/lib").glob("ld-musl-*")) else ""
    return f"@anthropic-ai/claude-code-{system}-{machine}{musl}"


def claude(version: str = CURRENT) -> Path:
    """Claude Code's program. CliMissing when it cannot be had."""
    package = claude_package()
    return fetch("claude", package, version, f"{package}/claude")


def node() -> Path:
    """A Node that Pi runs on. CliMissing when it cannot be had."""
    return fetch("node", "node", NODE, "node/bin/node", scripts=True)


def pi() -> Path:
    """Pi's script, for :func:`node`. CliMissing when it cannot be had."""
    package = "@earendil-works/pi-coding-agent"
    return fetch("pi", package, PI, f"{package}/dist/bundle/cli.js")


def old_pi() -> Path:
    """The script of the last Pi under its old name. CliMissing when it cannot be had."""
    package = "@mariozechner/pi-coding-agent"
    return fetch("pi", package, OLD_PI, f"{package}/dist/cli.js")


def opencode() -> Path:
    """OpenCode's program. CliMissing when it cannot be had."""
    system = {"Linux": "linux", "Darwin": "darwin"}.get(platform.system(), "other")
    machine = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}.get(
        platform.machine().lower(), platform.machine().lower()
    )
    package = f"opencode-{system}-{machine}"
    processor = Path("/proc/cpuinfo")
    if machine == "x64" and processor.exists() and " avx2" not in processor.read_text("utf-8"):
        package += "-baseline"
    package += "-musl" if any(Path("/lib").glob("ld-musl-*")) else ""
    return fetch("opencode", package, OPENCODE, f"{package}/bin/opencode")


def codex() -> Path:
    """Codex's program. CliMissing when it cannot be had."""
    system = {"Linux": "linux", "Darwin": "darwin"}.get(platform.system(), "other")
    machine = platform.machine().lower()
    short, long = {"x86_64": ("x64", "x86_64"), "amd64": ("x64", "x86_64")}.get(machine, ("arm64", "aarch64"))
    target = f"{long}-{'apple-darwin' if system == 'darwin' else 'unknown-linux-musl'}"
    return fetch("codex", "@openai/codex", CODEX, f"@openai/codex-{system}-{short}/vendor/{target}/bin/codex")


def fetch(name: str, package: str, version: str, program: str, scripts: bool = False) -> Path:
    """One file of an npm package, fetched with all it needs when the cache lacks it.

    ``name``: of its folder in the cache, together with the version. ``program``: the file, below
    ``node_modules``. ``scripts``: whether the package's own scripts run, as some need to be complete.
    CliMissing when it cannot be had.
    """
    folder = cache_folder() / f"{name}-{version}"
    file = folder / "node_modules" / program
    if file.exists():
        return file
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not file.exists():  # Another worker may have fetched it while this one waited.
            _install(f"{package}@{version}", folder, scripts)
    if not file.exists():
        raise CliMissing(f"{package}@{version} holds no {program}")
    return file


def _install(spec: str, folder: Path, scripts: bool) -> None:
    """Fetch beside the final place, then rename: an interrupted download leaves no half a CLI."""
    beside = Path(tempfile.mkdtemp(prefix=folder.name + ".", dir=folder.parent))
    try:
        _npm_install(spec, beside, scripts)
        shutil.rmtree(folder, ignore_errors=True)
        beside.rename(folder)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _npm_install(spec: str, prefix: Path, scripts: bool) -> None:
    npm = shutil.which("npm", path=_ENVIRON_AT_IMPORT.get("PATH"))
    if npm is None:
        raise CliMissing(f"npm is not installed (it fetches {spec})")
    sys.stderr.write(f"\nfetching {spec} (once) ...\n")
    command = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(prefix)]
    command += ["--foreground-scripts"] if scripts else ["--ignore-scripts"]
    environ = {**_ENVIRON_AT_IMPORT, "HOME": str(real_home())}
    try:
        done = subprocess.run(
            [*command, spec],
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
