"""GitHub's issues and pull requests, by ``gh``. Pure: what to ask, and what the answer says."""

from typing import List

from companion.core.errors import ProgramFailed
from companion.enrich.answers import Fields, json_object, number_of, text_of
from companion.enrich.urls import Link

PROGRAM = "gh"

_STATUSES = {"OPEN": "open", "CLOSED": "closed", "MERGED": "merged"}
_FAILING = {"ACTION_REQUIRED", "CANCELLED", "ERROR", "FAILURE", "STALE", "STARTUP_FAILURE", "TIMED_OUT"}
_PENDING = {"EXPECTED", "IN_PROGRESS", "PENDING", "QUEUED", "REQUESTED", "WAITING"}


def arguments(link: Link) -> List[str]:
    """What ``gh`` is asked."""
    if link.place == "pull":
        return ["pr", "view", link.url, "--json", "isDraft,number,state,statusCheckRollup,title"]
    return ["issue", "view", link.url, "--json", "number,state,title"]


def fields(link: Link, text: str) -> Fields:
    """``number``, ``title``, ``status``, and ``ciStatus`` of a pull request that is not closed.

    ProgramFailed when the answer does not tell them.
    """
    answer = json_object(PROGRAM, text)
    state = answer.get("state")
    status = _STATUSES.get(state) if isinstance(state, str) else None
    if answer.get("isDraft") is True:
        status = "draft"
    if status is None:
        raise ProgramFailed("gh's answer has no usable state")
    found: Fields = {
        "number": number_of(PROGRAM, answer.get("number"), "number"),
        "title": text_of(PROGRAM, answer.get("title"), "title"),
        "status": status,
    }
    if link.place == "pull" and status in ("open", "draft"):
        found["ciStatus"] = ci_status(answer.get("statusCheckRollup"))
    return found


def ci_status(rollup: object) -> str:
    """``none``, ``failing``, ``pending`` or ``passing``, from the list of checks; the worst counts.

    ProgramFailed when it is no list: "none" would then be a claim.
    """
    if not rollup:
        return "none"
    if not isinstance(rollup, list):
        raise ProgramFailed("gh's answer has no usable statusCheckRollup")
    states = [_states(check) for check in rollup]
    if any(each & _FAILING for each in states):
        return "failing"
    return "pending" if any(each & _PENDING for each in states) else "passing"


def _states(check: object) -> "set[str]":
    """A check run has a status and, when done, a conclusion; a commit status has a state."""
    if not isinstance(check, dict):
        return {"PENDING"}
    values = (check.get(name) for name in ("conclusion", "state", "status"))
    return {value for value in values if isinstance(value, str)}
