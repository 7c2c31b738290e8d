"""Makes the modules of the archive small, and compiles them. Runs at build time, as a program:

    python3 pack.py clients FOLDER    put what the clients share into each client below it
    python3 pack.py strip FOLDER      take comments and docstrings out of all modules below it
    python3 pack.py compile FOLDER    write them, compiled by this very Python, to standard output
    python3 pack.py pyc FILE          write one file as an ordinary .pyc to standard output

The build calls the third with each Python that it finds. This file is not in the archive.
"""

import ast
import importlib.util
import io
import marshal
import runpy
import sys
import tokenize
from pathlib import Path
from typing import Dict, Iterator, List


def complete_clients(folder: Path) -> None:
    """Rewrite every ``client.js`` as a file that stands alone, and take the shared file away."""
    # Run by itself: the module lies in that very folder, and not where Python looks for modules.
    bundle = runpy.run_path(str(folder / "adapters" / "client" / "bundle.py"))
    shared = folder / "adapters" / "client" / bundle["SHARED"]
    text = shared.read_text(encoding="utf-8")
    for path in sorted(folder.glob("adapters/*/client.js")):
        path.write_bytes(bundle["bundled"](path.read_text(encoding="utf-8"), text).encode("utf-8"))
    shared.unlink()


def strip(folder: Path) -> None:
    """Rewrite every module without comments and docstrings, at a third of its size."""
    for path in _modules(folder):
        path.write_bytes(without_comments(path.read_bytes(), path.relative_to(folder).as_posix()))


def compile_all(folder: Path) -> bytes:
    """All modules as a marshalled dict, sorted: name to one letter and the marshalled code.

    The letter is ``P`` for a package, ``M`` for another module.
    """
    compiled: Dict[str, bytes] = {}
    for path in _modules(folder):
        relative = path.relative_to(folder)
        package = relative.name == "__init__.py"
        name = ".".join(relative.parent.parts if package else relative.with_suffix("").parts)
        tree = slimmed(ast.parse(path.read_bytes(), str(relative)))
        code = compile(tree, f"mdello.pyz/site-packages/{relative.as_posix()}", "exec", dont_inherit=True)
        compiled[name] = (b"P" if package else b"M") + marshal.dumps(code)
    return marshal.dumps(compiled, 2)


def as_pyc(path: Path) -> bytes:
    """A ``.pyc`` that is valid whatever its source's time or content (PEP 552, unchecked)."""
    code = compile(path.read_bytes(), "mdello.pyz/__main__.py", "exec", dont_inherit=True)
    return importlib.util.MAGIC_NUMBER + b"\x01\0\0\0" + bytes(8) + marshal.dumps(code)


def without_comments(data: bytes, name: str) -> bytes:
    """A module's text without comments and docstrings; every line keeps its number.

    ValueError when that would change what the module does.
    """
    text = data.decode("utf-8")
    tree = ast.parse(text, name)
    lines = text.split("\n")
    for doc in _docstrings(tree):
        first, last = doc.lineno - 1, (doc.end_lineno or doc.lineno) - 1
        before = lines[first].encode()[: doc.col_offset].decode()  # Offsets count bytes.
        after = lines[last].encode()[doc.end_col_offset or 0 :].decode()
        lines[first : last + 1] = [before + "''" + after, *[""] * (last - first)]
    for token in tokenize.generate_tokens(io.StringIO("\n".join(lines)).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column].rstrip()
    stripped = "\n".join(lines)
    if ast.dump(slimmed(ast.parse(stripped, name))) != ast.dump(slimmed(tree)):
        raise ValueError(f"{name}: its comments cannot be taken out")
    return stripped.encode("utf-8")


def slimmed(tree: ast.Module) -> ast.Module:
    """The tree without what nobody reads at run time: docstrings, annotations of functions.

    Half of the size, and typing's share of each start. Annotations in classes make dataclasses
    and stay; so do assertions, which ``-OO`` would drop.
    """
    docstrings = {id(doc) for doc in _docstrings(tree)}
    for node in ast.walk(tree):
        for first in _body(node)[:1]:
            if isinstance(first, ast.Expr) and id(first.value) in docstrings:
                body = _body(node)
                body[:1] = [] if body[1:] else [ast.copy_location(ast.Pass(), first)]
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            node.returns = None
        if isinstance(node, ast.arg):
            node.annotation = None
    return tree


def _modules(folder: Path) -> List[Path]:
    return sorted(folder.rglob("*.py"))


def _body(node: ast.AST) -> List[ast.stmt]:
    """The statements of what may begin with a docstring; empty for anything else."""
    can = isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
    return node.body if can else []  # type: ignore[attr-defined]


def _docstrings(tree: ast.Module) -> Iterator[ast.Constant]:
    for node in ast.walk(tree):
        for first in _body(node)[:1]:
            value = first.value if isinstance(first, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield value


if __name__ == "__main__":
    task, place = sys.argv[1], Path(sys.argv[2])
    if task == "clients":
        complete_clients(place)
    elif task == "strip":
        strip(place)
    else:
        sys.stdout.buffer.write(compile_all(place) if task == "compile" else as_pyc(place))
