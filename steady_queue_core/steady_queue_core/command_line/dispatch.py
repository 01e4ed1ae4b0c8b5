"""From the parsed options of the management command to a subcommand, and its exit status."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from .context import Context, Output
from .parsers import START
from .registry import named
from .runner import run
from .subcommand import CHOICE


def is_subcommand(options: Mapping[str, Any]) -> bool:
    """Whether these are the options of a subcommand other than ``start``."""
    return options.get(CHOICE) not in (None, START)


def run_subcommand(options: Mapping[str, Any], stdout: Output, stderr: Output) -> None:
    """Run the subcommand that the options name; raise SystemExit unless its exit status is 0."""
    code = run(named(options[CHOICE]), Context(options, stdout, stderr))
    if code:
        sys.exit(code)
