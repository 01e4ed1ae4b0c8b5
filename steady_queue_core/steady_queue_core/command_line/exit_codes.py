"""What the exit status of a subcommand says, and the exception that ends one with such a status."""

from __future__ import annotations

#: Done, and what was asked about is healthy.
DONE = 0
#: Unhealthy, or the operation failed.
FAILED = 1
#: Wrong usage; argparse's own.
WRONG_USAGE = 2
#: What was named, such as the id of a job, does not exist.
NOT_FOUND = 4
#: Refused: a plugin is missing, or migrations are pending.
REFUSED = 5
#: Interrupted with Ctrl-C, and output that nobody reads any more: 128 and the signal's number.
INTERRUPTED, BROKEN_PIPE = 130, 141


class Refusal(Exception):
    """The subcommand ends with this message, on the standard error and as a problem in JSON, and
    with ``exit_code``."""

    def __init__(self, message: str, exit_code: int = FAILED) -> None:
        super().__init__(message)
        self.exit_code = exit_code
