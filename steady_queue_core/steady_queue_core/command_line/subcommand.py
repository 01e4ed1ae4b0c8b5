"""What a subcommand is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from argparse import ArgumentParser
from typing import ClassVar

from .context import Context


class Subcommand(ABC):
    """One subcommand of ``manage.py steady_queue``.

    A module of this package defines it, and ``registry`` names it: that makes it known to the help,
    to the shells' completion, and to the console script.
    """

    #: As it is typed.
    name: ClassVar[str]
    #: What it was called in the release before, which works until the next one.
    former: ClassVar[str] = ""
    #: What it does, on one line.
    help: ClassVar[str]
    #: Whether it has ``--json``; then ``run()`` reports by ``Context.show()``.
    prints_json: ClassVar[bool] = True
    #: Whether it has ``--backend``; then ``Context`` chooses the databases.
    takes_backend: ClassVar[bool] = True

    def add_arguments(self, parser: ArgumentParser) -> None:  # noqa: B027  # Most have none.
        """Add the options of its own to a parser. Django's, such as ``-v``, are there already.

        An argument that is required must not have the name of an option of ``start``, for which
        ``call_command()`` would take it, and none may be called ``args``.
        """

    @abstractmethod
    def run(self, context: Context) -> int:
        """Do it; return the exit status, see ``exit_codes``.

        Raises ``Refusal`` to end with a message. Errors of the project's settings and of the
        database may pass through: ``runner`` tells of them.
        """
