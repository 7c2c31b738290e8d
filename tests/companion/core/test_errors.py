"""The tree of errors: one meaning per class, each with its answer."""

import inspect
from typing import List, Type

import pytest

from companion.core import errors
from companion.core.errors import CompanionError, MethodNotAllowed, RequestError


def _classes() -> List[type]:
    return [
        each for each in vars(errors).values() if inspect.isclass(each) and each.__module__ == errors.__name__
    ]


@pytest.mark.parametrize("error", _classes())
def test_every_error_stands_below_the_one_base_and_in_the_drawing(error: Type[CompanionError]) -> None:
    """A new error is drawn, has an HTTP status and an exit code."""
    assert issubclass(error, CompanionError)
    assert errors.__doc__ is not None
    if error is not RequestError:
        assert error.__name__ in errors.__doc__
    assert 400 <= error.status <= 503
    assert error.exit_code in (1, 2)
    assert error.__doc__


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("BadRequest", 400),
        ("Forbidden", 403),
        ("NotFound", 404),
        ("MethodNotAllowed", 405),
        ("RequestTimeout", 408),
        ("Conflict", 409),
        ("BodyTooLarge", 400),
        ("UnsupportedMediaType", 415),
        ("CardReadError", 400),
        ("BoardError", 400),
        ("StorageError", 500),
        ("CompanionError", 500),
        ("Overloaded", 503),
    ],
)
def test_http_statuses_are_the_contracts(name: str, status: int) -> None:
    """An over-long body is 400, not 413."""
    assert getattr(errors, name).status == status


def test_a_wrong_environment_has_an_exit_code_of_its_own() -> None:
    """So that scripts can tell it from everything else."""
    assert errors.SettingsError.exit_code == 2
    assert errors.StorageError.exit_code == errors.UsageError.exit_code == 1


def test_method_not_allowed_carries_what_is() -> None:
    """For the Allow header."""
    error = MethodNotAllowed(("GET", "POST"))
    assert (error.allowed, str(error)) == (("GET", "POST"), "Method not allowed")
