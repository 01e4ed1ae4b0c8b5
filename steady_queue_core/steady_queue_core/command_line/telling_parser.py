"""A parser that tells of wrong options in JSON, too, if that is asked for."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from django.core.management.base import CommandParser

from .context import SCHEMA

JSON_OPTION = "--json"


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
