"""``take-over``: migrations where another package with the same label was."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator

from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, InterfaceError, connections

from ..models.recorded import FIRST, Misfit, misfit_in
from .context import Context
from .exit_codes import DONE, FAILED
from .subcommand import Subcommand


class TakeOver(Subcommand):
    """The recorded migrations are made to fit the tables, in each of ``DATABASES``."""

    name = "take-over"
    help = "let migrate work where the package steady-queue was"
    takes_backend = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--dry-run", action="store_true", help="say what would be done, and do nothing"
        )

    def run(self, context: Context) -> int:
        problems: list[str] = []
        misfits = list(_misfits(problems))
        dry = context.options["dry_run"]
        if not dry:
            for misfit in misfits:
                misfit.mend()
        lines = [line for misfit in misfits for line in _lines(misfit, dry)]
        found = [_described(misfit) for misfit in misfits]
        context.show(
            {"action": self.name, "dry_run": dry, "databases": found},
            lines or ["There is nothing to take over."],
            problems,
        )
        return FAILED if problems else DONE


def _misfits(problems: list[str]) -> Iterator[Misfit]:
    for using in connections:
        try:
            misfit = misfit_in(using)
        except (DatabaseError, InterfaceError, ImproperlyConfigured) as error:
            problems.append(f"Database {using!r} could not be examined: {str(error).strip()}")
            continue
        if misfit is not None:
            yield misfit


def _lines(misfit: Misfit, dry: bool) -> Iterator[str]:
    option = "" if misfit.using == "default" else f" --database {misfit.using}"
    will = "would be" if dry else "now"
    if misfit.has_tables:
        yield f"Database {misfit.using}: {will} recorded: {FIRST}"
    else:
        yield f"Database {misfit.using}: {will} recorded no more: {', '.join(misfit.recorded)}"
    if misfit.others:
        yield f"Left as they are: {', '.join(misfit.others)}"
    yield f"{'Then run' if dry else 'Run'}: python manage.py migrate{option}"


def _described(misfit: Misfit) -> dict[str, object]:
    return {
        "database": misfit.using,
        "recorded": list(misfit.recorded),
        "has_tables": misfit.has_tables,
        "left": list(misfit.others),
    }
