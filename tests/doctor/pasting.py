"""Whether the commands that a remedy names can be pasted."""

from __future__ import annotations

import re
import shlex

from steady_queue_core.management.commands.steady_queue import Command

#: A command ends with its part of a sentence.
COMMAND = re.compile(r"python manage\.py steady_queue (.*?)[.;,]?(?:(?<=[.;,])\s|$)")


def understood(remedy: str) -> list[str]:
    """Return the commands of a remedy, each of which its parser understands. Raises
    ``CommandError`` for others."""
    found = COMMAND.findall(remedy)
    parser = Command().create_parser("manage.py", "steady_queue")
    for each in found:
        parser.parse_args(shlex.split(each))
    return found
