"""Asking before something is lost, or done by mistake."""

from __future__ import annotations

import sys

from .context import Context
from .exit_codes import FAILED, WRONG_USAGE, Refusal


def confirm(context: Context, question: str, answers: str = "--yes, or --dry-run") -> None:
    """Ask unless ``--yes`` is given; raise ``Refusal`` if nobody can be asked, or the answer is
    no. ``answers``: the options that answer the question."""
    if context.options["yes"]:
        return
    if not sys.stdin.isatty():
        raise Refusal(f"{question} Nobody can be asked: say {answers}.", WRONG_USAGE)
    context.note(f"{question} [y/N]")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Refusal("Nothing was changed.", FAILED)
