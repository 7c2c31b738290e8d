# The archive's __main__.py. Every Python from 2.7 on must be able to parse this file, since its
# first duty is to tell an old one, in one line, what is needed. The rest is in start.py.
import sys

if sys.version_info < (3, 9):
    sys.stderr.write(
        "mdello needs Python 3.9 or newer, but this is Python %d.%d.%d (%s).\n"
        % (sys.version_info[:3] + (sys.executable,))
    )
    sys.exit(1)

import marshal
import os
from importlib.util import MAGIC_NUMBER  # Loaded already: Python needed it to open the archive.

here = os.path.dirname(os.path.abspath(__file__))
loader = __loader__  # type: ignore[name-defined] # Given to __main__ by Python; reads from the archive or from a folder.
root = os.path.dirname(__file__)

# One member holds the modules compiled for this Python. For any other Python there is none, and
# the modules are compiled from source.
try:
    ready = marshal.loads(loader.get_data(os.path.join(root, "ready", MAGIC_NUMBER.hex())))
except OSError:
    ready = {}

if "companion.archive.start" in ready:
    code = marshal.loads(ready["companion.archive.start"][1:])  # One letter: is it a package?
else:
    path = os.path.join(root, "site-packages", "companion", "archive", "start.py")
    code = compile(loader.get_data(path), path, "exec", dont_inherit=True)

start = {"__name__": "companion.archive.start"}
exec(code, start)
sys.exit(start["run"](here, ready))  # type: ignore[operator]
