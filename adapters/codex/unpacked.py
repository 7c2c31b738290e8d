"""Compressed rollouts: after a week of rest Codex packs a rollout, ``.jsonl.zst``, and removes it.

Python can unpack them from 3.14 on; before, the program ``zstd`` does it, if it is there.
"""

import contextlib
import importlib
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import IO, Iterator

SUFFIX = ".zst"

LIMIT_S = 60.0
"""So long may the program take for one file."""
LIMIT_BYTES = 1024 * 1024 * 1024
"""An unpacked rollout has some megabytes; a file that grows beyond this was made to do harm."""

_MODULE = "compression.zstd"
_CHUNK_BYTES = 1024 * 1024


@contextlib.contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """The file itself, or a copy of what is packed in it that is gone afterwards.

    OSError when it cannot be unpacked; the text is for people.
    """
    if path.suffix != SUFFIX:
        yield path
        return
    with tempfile.NamedTemporaryFile(prefix="mdello-", suffix=".jsonl") as copy:
        try:
            zstd = importlib.import_module(_MODULE)
        except ImportError:
            _by_program(path, copy)
        else:
            try:
                with zstd.open(path, "rb") as packed:
                    _copy(packed, copy)
            except (zstd.ZstdError, EOFError) as exc:
                raise OSError(f"it cannot be unpacked ({exc})") from exc
        copy.flush()
        yield Path(copy.name)


def _by_program(path: Path, copy: IO[bytes]) -> None:
    program = shutil.which("zstd")
    if program is None:
        raise OSError("it is compressed: the program zstd, or Python 3.14, is needed to read it")
    with subprocess.Popen(
        [program, "-dcq", "--", str(path)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        timer = threading.Timer(LIMIT_S, process.kill)
        timer.daemon = True
        timer.start()
        try:
            assert process.stdout is not None
            _copy(process.stdout, copy)
        finally:
            if process.stdout is not None:
                process.stdout.close()
            code = process.wait()  # Its pipe is closed, or the timer ends it.
            timer.cancel()
    if code:
        raise OSError(f"zstd could not unpack it (exit code {code})")


def _copy(packed: IO[bytes], copy: IO[bytes]) -> None:
    size = 0
    while True:
        chunk = packed.read(_CHUNK_BYTES)
        if not chunk:
            return
        size += len(chunk)
        if size > LIMIT_BYTES:
            raise OSError(f"more than {LIMIT_BYTES // (1024 * 1024)} MiB are packed in it")
        copy.write(chunk)
