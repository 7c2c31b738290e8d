"""The tree of errors that the companion raises. One meaning per class.

    CompanionError                  anything that can be told to a user in one line
    ├── UsageError                  the command line is wrong                        exit 1
    ├── SettingsError               an environment value or option cannot be used    exit 2
    ├── RequestError                the client's request cannot be served
    │   ├── BadRequest              400
    │   ├── Forbidden               403
    │   ├── NotFound                404
    │   ├── MethodNotAllowed        405, carries the allowed methods
    │   ├── RequestTimeout          408
    │   ├── Conflict                409
    │   ├── BodyTooLarge            400 (the contract's choice, not 413)
    │   ├── UnsupportedMediaType    415
    │   └── Overloaded              503
    ├── CompanionUnreachable        our own client got no usable answer from the port
    ├── CardReadError               a card's file is there but cannot be read        400
    ├── ProgramFailed               an outside program is missing, fails, hangs or babbles
    ├── AssignmentFailed            the GitHub job is set up wrongly, or could not do its work
    ├── BoardError                  a board cannot be made, read or registered       400
    └── StorageError                our own files cannot be written                  500

Services raise these; the edge (an HTTP handler, a command) turns them into an answer. ``status``
is the HTTP status at that edge, ``exit_code`` the process's.
"""

from typing import Tuple


class CompanionError(Exception):
    """Base of all. ``str(error)`` is one line for people."""

    status = 500
    exit_code = 1


class UsageError(CompanionError):
    """The command line cannot be understood."""


class SettingsError(CompanionError):
    """An environment variable or option holds a value that cannot be used."""

    exit_code = 2


class RequestError(CompanionError):
    """Base of what is wrong with one HTTP request."""

    status = 400


class BadRequest(RequestError):
    """The request's content is wrong."""


class BodyTooLarge(RequestError):
    """The body is longer than the route admits."""


class Forbidden(RequestError):
    """The request may not come from there (Host, Origin, Referer, another user)."""

    status = 403


class NotFound(RequestError):
    """No such route or thing."""

    status = 404


class MethodNotAllowed(RequestError):
    """The route exists, but not for this method."""

    status = 405

    def __init__(self, allowed: Tuple[str, ...]) -> None:
        super().__init__("Method not allowed")
        self.allowed = allowed


class RequestTimeout(RequestError):
    """The body did not arrive within its time."""

    status = 408


class Conflict(RequestError):
    """The request cannot be served in the present state."""

    status = 409


class UnsupportedMediaType(RequestError):
    """The body is declared to be something else than JSON."""

    status = 415


class Overloaded(RequestError):
    """As much of this is open as we admit."""

    status = 503


class CompanionUnreachable(CompanionError):
    """Nobody listens on the port, or what answers is no JSON, a refusal, or comes too late."""


class CardReadError(CompanionError):
    """A card's file exists but reading it failed; the text is the operating system's."""

    status = 400


class ProgramFailed(CompanionError):
    """An outside program could not be started, failed, took too long or printed too much."""


class AssignmentFailed(CompanionError):
    """The job that puts GitHub's assignments on a board is set up wrongly, or could not do its work."""


class BoardError(CompanionError):
    """A board's folder or its file cannot be used."""

    status = 400


class StorageError(CompanionError):
    """One of our own files cannot be written; the text names the file and the reason."""

    status = 500
