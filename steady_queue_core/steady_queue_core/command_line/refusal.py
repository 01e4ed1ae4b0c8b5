"""The exception by which a subcommand ends without having done what was asked."""

from __future__ import annotations

from .exit_codes import FAILED


class Refusal(Exception):
    """The subcommand ends with this message, on the standard error and as a problem in JSON, and
    with ``exit_code``."""

    def __init__(self, message: str, exit_code: int = FAILED) -> None:
        super().__init__(message)
        self.exit_code = exit_code
