"""Every case of the corpus has the status that it must have, at every moment that it names."""

import json
from pathlib import Path

import pytest

from companion.sessions.verdict import RULES
from tests.corpus.replay import Replay, cases

LEAST_CASES = 60


@pytest.mark.parametrize("case", cases(), ids=lambda case: f"{case.parent.name}/{case.name}")
def test_the_case_is_judged_as_it_says(case: Path, tmp_path: Path) -> None:
    """From its first line to its last."""
    replay = Replay(case, tmp_path)
    assert {"about", "version", "source", "session", "epoch"} <= set(replay.head)
    assert any("expect" in step for step in replay.steps)
    replay.run()


def test_the_corpus_is_large_and_knows_every_rule() -> None:
    """A rule that no case names is not shown to be of use."""
    steps = [
        json.loads(line)
        for case in cases()
        for line in (case / "timeline.jsonl").read_text("utf-8").splitlines()
    ]
    named = {str(step.get("rule")) for step in steps}
    assert {rule.name for rule in RULES} - named == set()
    assert len(cases()) >= LEAST_CASES
