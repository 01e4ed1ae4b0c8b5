"""Whether the commands that a remedy names can be pasted."""

from __future__ import annotations

import re
import shlex

from steady_queue_core.management.commands.steady_queue import Command

#: A command ends with its part of a sentence.
COMMAND = re.compile(r"python manage\.py steady_queue (.*?)[.;,]?(?:(?<=[.;,])\s|$)")


def commands(remedy: str) -> list[str]:
    """Return what follows ``manage.py steady_queue`` in the commands of a remedy."""
    return COMMAND.findall(remedy)


def require_pasteable(remedy: str) -> None:
    """Raise ``CommandError`` for a command that its parser does not understand."""
    parser = Command().create_parser("manage.py", "steady_queue")
    for each in commands(remedy):
        parser.parse_args(shlex.split(each))
