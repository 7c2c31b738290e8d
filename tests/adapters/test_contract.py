"""The records and errors of the contract between the companion and its agents."""

from contextlib import suppress
from pathlib import Path

from adapters.contract import AdapterError, ReadReport, Status


def test_an_error_names_its_file() -> None:
    """What a person reads has the file in front of the reason; both can be had apart."""
    error = AdapterError("not a table", Path("/t/s.jsonl"))
    assert str(error) == "/t/s.jsonl: not a table"
    assert (error.reason, error.path) == ("not a table", Path("/t/s.jsonl"))


def test_an_error_without_a_file_is_its_reason() -> None:
    """Not every failure has a file."""
    error = AdapterError("too old")
    assert (str(error), error.path) == ("too old", None)


def test_statuses_are_the_contracts_words() -> None:
    """Five, spelled as they travel."""
    words = ["idle", "running", "waiting_for_input", "ready_for_review", "closed"]
    assert [status.value for status in Status] == words
    assert all(Status(word) == word for word in words)


def test_reports_do_not_share_their_lists() -> None:
    """Each report counts for itself."""
    ReadReport().skipped.append(("a", "b"))
    ReadReport().unknown["x"] = 1
    assert (ReadReport().skipped, ReadReport().unknown) == ([], {})


def test_damage_is_noted_where_it_was_met() -> None:
    """Also when reading ended in an error; a place without any is not named."""
    report = ReadReport()
    for place in ("a", "b", "a"):
        with suppress(OSError), report.damage_in(place):
            report.damaged += place == "a"
            raise OSError
    assert (report.damaged, report.damaged_in) == (2, {"a": 2})


def test_reports_of_several_folders_are_one() -> None:
    """Counts add up, by name too; one that is incomplete makes all so."""
    one = ReadReport(records=1, damaged=1, damaged_in={"a": 1}, unknown={"x": 1}, skipped=[("p", "r")])
    two = ReadReport(records=2, damaged=3, damaged_in={"a": 1, "b": 2}, unknown={"x": 2}, incomplete=True)
    one.add(two)
    assert (one.records, one.damaged, one.damaged_in, one.unknown) == (3, 4, {"a": 2, "b": 2}, {"x": 3})
    assert one.skipped == [("p", "r")] and one.incomplete
