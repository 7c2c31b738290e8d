#!/usr/bin/env python3
"""A ``gh`` that knows ``search issues`` and ``search prs``, strict about its options.

What it answers stands in ``$FAKE_GH/answers.json``: an object with the keys ``issues`` (assigned),
``prs`` (assigned) and ``reviews`` (asked for), each one of

    [...]                                the results, printed as JSON
    {"raw": "..."}                       printed as it is
    {"exit": 4, "stderr": "..."}         it fails
    {"hang": true}                       it never ends

A missing key is an empty list. Each call is appended to ``$FAKE_GH/calls.jsonl``, the process of the
latest one stands in ``$FAKE_GH/pid``.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

FIELDS = ["author", "body", "labels", "number", "repository", "state", "title", "updatedAt", "url"]


def main() -> int:
    """Answer one call."""
    folder = Path(os.environ["FAKE_GH"])
    (folder / "pid").write_text(str(os.getpid()))
    with (folder / "calls.jsonl").open("a") as calls:
        calls.write(json.dumps(sys.argv[1:]) + "\n")
    parser = argparse.ArgumentParser(prog="gh", allow_abbrev=False)
    parser.add_argument("search", choices=["search"])
    parser.add_argument("kind", choices=["issues", "prs"])
    parser.add_argument("query", nargs="*")
    parser.add_argument("--assignee")
    parser.add_argument("--state", choices=["open", "closed"])
    parser.add_argument("--limit", type=int, choices=range(1, 1001), metavar="N")
    parser.add_argument("--json")
    parser.add_argument("--owner", action="append", default=[])
    args = parser.parse_args()
    unknown = set((args.json or "").split(",")) - set(FIELDS)
    if unknown:
        print(f"Unknown JSON field: {sorted(unknown)}", file=sys.stderr)
        return 1
    name = "reviews" if args.query == ["user-review-requested:@me"] else args.kind
    return answer(json.loads((folder / "answers.json").read_text()).get(name, []), args.owner)


def answer(what: object, owners: "list[str]") -> int:
    """Print it, fail, or hang."""
    if isinstance(what, list):
        asked = [each for each in what if not owners or owner(each) in owners]
        print(json.dumps(asked))
        return 0
    assert isinstance(what, dict)
    while what.get("hang"):
        time.sleep(60)
    sys.stdout.write(str(what.get("raw", "")))
    sys.stderr.write(str(what.get("stderr", "")))
    return int(what.get("exit", 0))


def owner(result: object) -> str:
    """Whose repository a result is from."""
    url = result.get("url") if isinstance(result, dict) else None
    return url.split("/")[3] if isinstance(url, str) and url.count("/") > 3 else ""


if __name__ == "__main__":
    raise SystemExit(main())
