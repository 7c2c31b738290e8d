"""What is counted of the reports of clients."""

import threading

import pytest

from companion.core.clock import iso_utc
from companion.sessions.clients import MAX_HARNESSES, OTHER_NAMES, Clients

NOW = 1_800_000_000.0


def test_reports_are_counted_by_harness_with_the_time_of_the_last() -> None:
    """One about no card of ours proves that the client works, too."""
    clients = Clients(lambda: NOW)
    assert clients.facts() == {}
    clients.count({"harness": "pi", "sessionId": "s"}, known_card=True)
    clients.count({"harness": "pi"}, known_card=False)
    assert clients.facts() == {"pi": {"reports": 2, "unknownCards": 1, "lastReportAt": iso_utc(NOW)}}


@pytest.mark.parametrize(
    "body", [None, [], "pi", 3, {}, {"harness": None}, {"harness": ["pi"]}, {"harness": ""}]
)
def test_who_does_not_say_its_name_is_unknown(body: object) -> None:
    """Whatever was posted."""
    clients = Clients()
    clients.count(body, known_card=False)
    assert list(clients.facts()) == ["unknown"]


def test_the_number_and_the_length_of_names_are_bounded() -> None:
    """They come from outside; those that are known already are still counted."""
    clients = Clients()
    clients.count({"harness": "x" * 100}, known_card=True)
    for number in range(1000):
        clients.count({"harness": f"h{number}"}, known_card=True)
    clients.count({"harness": "h3"}, known_card=True)
    facts = clients.facts()
    assert len(facts) == MAX_HARNESSES
    assert facts["h3"]["reports"] == 2  # type: ignore[index]
    assert facts[OTHER_NAMES]["reports"] == 1 + 1000 - (MAX_HARNESSES - 1)  # type: ignore[index]


def test_no_report_of_several_threads_is_lost() -> None:
    """Each connection has its own."""
    clients = Clients()

    def many() -> None:
        for _ in range(500):
            clients.count({"harness": "pi"}, known_card=True)

    threads = [threading.Thread(target=many) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert clients.facts()["pi"]["reports"] == 2000  # type: ignore[index]
