"""The parsers of the subcommands, below the one of the management command, which tell of wrong
options in JSON, too, if that is asked for."""

from __future__ import annotations

import json
import sys
from argparse import SUPPRESS, ArgumentParser
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from django.core.management.base import BaseCommand, CommandParser, DjangoHelpFormatter

from .choice import CHOICE, START
from .context import SCHEMA
from .registry import SUBCOMMANDS
from .subcommand import Subcommand

JSON_OPTION = "--json"


def add_subcommands(
    parser: CommandParser, add_start_arguments: Callable[[CommandParser], None]
) -> None:
    """Add a parser for each subcommand, and for ``start`` with the options of the command itself.

    Django's own options may stand before the subcommand and after it.
    """
    # Django's create_parser() takes no class, and that of the subcommands' parsers is the same.
    parser.__class__ = TellingParser
    choice = parser.add_subparsers(
        dest=CHOICE, metavar="subcommand", help="what to do instead of starting the queue:"
    )
    start = _added(choice, START, "run the queue; so does the command without a subcommand")
    add_start_arguments(start)
    _suppress_defaults(start)
    for subcommand in SUBCOMMANDS:
        own = _added(choice, subcommand.name, subcommand.help)
        if subcommand.former:
            choice.choices[subcommand.former] = own  # Not in the help, where an alias would be.
        _suppress_defaults(own)
        _add_common(own, subcommand)
        subcommand.add_arguments(own)


def _added(choice: Any, name: str, help_text: str) -> CommandParser:
    base = BaseCommand().create_parser("manage.py", name, add_help=False)
    parser: CommandParser = choice.add_parser(
        name,
        help=help_text,
        description=f"{help_text[0].upper()}{help_text[1:]}.",
        parents=[base],
        conflict_handler="resolve",
        formatter_class=DjangoHelpFormatter,
    )
    return parser


def _suppress_defaults(parser: ArgumentParser) -> None:
    """Let what was given before the subcommand stand unless it is given again after it."""
    for action in parser._actions:
        action.default = SUPPRESS


def _add_common(parser: ArgumentParser, subcommand: Subcommand) -> None:
    if subcommand.prints_json:
        parser.add_argument("--json", action="store_true", help="print one JSON object")
    if subcommand.takes_backend:
        # By default what was given before the subcommand, where start has this option, too.
        parser.add_argument(
            "--backend",
            default=SUPPRESS,
            help="alias in TASKS, where several databases are used",
        )


class TellingParser(CommandParser):
    """Prints one object with the problem on the standard output if ``--json`` is among the options
    of a command line that is wrong, beside the usage on the standard error."""

    _given: Sequence[str] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse, and keep what was given."""
        self._given = list(sys.argv[1:] if args is None else args)
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> Any:
        """End with the exit status of wrong usage, or, in ``call_command()``, raise."""
        if self.called_from_command_line and any(map(_asks_for_json, self._given)):
            with suppress(OSError, ValueError):
                sys.stdout.write(json.dumps({"schema": SCHEMA, "problems": [message]}) + "\n")
                sys.stdout.flush()
        return super().error(message)


def _asks_for_json(word: str) -> bool:
    return len(word) > len("--") and JSON_OPTION.startswith(word)
