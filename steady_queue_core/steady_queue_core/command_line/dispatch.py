"""From the parsed options of the management command to a subcommand, and its exit status."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from .choice import CHOICE
from .context import Context, Output
from .registry import named
from .runner import run


def run_subcommand(options: Mapping[str, Any], stdout: Output, stderr: Output) -> None:
    """Run the subcommand that the options name; raise SystemExit unless its exit status is 0."""
    code = run(named(options[CHOICE]), Context(options, stdout, stderr))
    if code:
        sys.exit(code)
