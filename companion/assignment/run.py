"""One run of the job: search, leave out what is known, write the rest."""

from dataclasses import dataclass
from pathlib import Path
from typing import Callable, List, Optional, Tuple

from companion.assignment.cards import body_of, title_of
from companion.assignment.known import links_in
from companion.assignment.search import Assignment, link_key, search
from companion.assignment.setting import COLUMN, Setting
from companion.core.errors import AssignmentFailed, CompanionError
from companion.core.files import held_alone
from companion.core.programs import Programs

# Ten pages of a hundred results take gh about half a minute.
SEARCH_TIMEOUT_S = 120.0
# A thousand results, some with long descriptions.
MOST_BYTES = 32 * 1024 * 1024

AddCard = Callable[[Path, str, str, str], Path]
"""Writes a new card: the board's folder, title, column, body; its path. CompanionError."""


@dataclass(frozen=True)
class Outcome:
    """What became of one run."""

    created: Tuple[Tuple[str, str], ...] = ()
    """(Title, path) of each card that was written, or (title, link) of those that would be."""
    known: int = 0
    """How many were on the board already."""
    unusable: int = 0
    """How many results could not be understood."""
    cut: bool = False
    """Whether GitHub may have more than it tells."""
    failure: Optional[str] = None
    """Why it ended before its end; what was created until then stays."""


class Runner:
    """Runs the job.

    Args:
        stopping: asked between two cards; a run that is no longer wanted then ends.
        timeout_s: of each of the three searches, in seconds.
    """

    def __init__(
        self,
        programs: Programs,
        add_card: AddCard,
        stopping: Callable[[], bool] = lambda: False,
        timeout_s: float = SEARCH_TIMEOUT_S,
    ) -> None:
        self._programs = programs
        self._add_card = add_card
        self._stopping = stopping
        self._timeout_s = timeout_s

    def run(self, setting: Setting, dry_run: bool = False) -> Outcome:
        """Search, then write what is new; a dry run writes nothing. Never raises CompanionError.

        A second run on the same board at the same time, of another process too, is refused.
        """
        try:
            with held_alone(Path(setting.folder)) as alone:
                if not alone and not dry_run:
                    raise AssignmentFailed(f"another run is at work in {setting.folder}")
                return self._run(setting, dry_run)
        except CompanionError as exc:
            return Outcome(failure=str(exc))

    def _run(self, setting: Setting, dry_run: bool) -> Outcome:
        gh = self._programs.path("gh")
        if gh is None:
            raise AssignmentFailed("gh, GitHub's command line, is not on PATH (GH_PATH may name it)")
        found = search(
            lambda argv: self._programs.run(argv, self._timeout_s, MOST_BYTES), gh, setting.organizations
        )
        # Asked after the searches, which take a while.
        known = links_in(setting.folder)
        new = [each for each in found.assignments if link_key(each.url) not in known]
        failure = None
        if dry_run:
            created = [(title_of(each), each.url) for each in new]
        else:
            created, failure = self._write(Path(setting.folder), new)
        return Outcome(tuple(created), len(found.assignments) - len(new), found.unusable, found.cut, failure)

    def _write(self, folder: Path, new: List[Assignment]) -> Tuple[List[Tuple[str, str]], Optional[str]]:
        created: List[Tuple[str, str]] = []
        for each in new:
            if self._stopping():
                return created, "the companion stopped before all cards were written"
            try:
                path = self._add_card(folder, title_of(each), COLUMN, body_of(each))
            except CompanionError as exc:
                return created, str(exc)
            created.append((title_of(each), str(path)))
        return created, None
