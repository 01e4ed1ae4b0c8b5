"""``steady-queue health --heartbeat-file PATH``: whether a supervisor lives, by its file alone.

Neither Django nor the project is loaded."""

from __future__ import annotations

import argparse
import os
import stat
import sys
import time
from collections.abc import Sequence

#: Seconds without a beat after which a supervisor counts as dead, unless told otherwise.
MAX_AGE = 30.0
#: Seconds that the time of the file may lie in the future: clocks are set.
MOST_AHEAD = 5.0


def is_asked_for(arguments: Sequence[str]) -> bool:
    """Whether the arguments of ``health`` ask for this check."""
    return any(each.partition("=")[0] == "--heartbeat-file" for each in arguments)


def run(arguments: Sequence[str]) -> int:
    """Check the file; say what is wrong with it on the standard error. Return the exit status: 0,
    or 1 if nobody lives."""
    parser = argparse.ArgumentParser(
        prog="steady-queue health",
        description="Exits with 0 if a supervisor has touched its heartbeat file of late.",
    )
    parser.add_argument("--heartbeat-file", required=True, help="as given to the supervisor")
    parser.add_argument(
        "--max-age", type=float, default=MAX_AGE, metavar="SECONDS", help="default: 30"
    )
    options = parser.parse_args(arguments)
    problem = _problem(options.heartbeat_file, options.max_age)
    if problem:
        sys.stderr.write(f"steady-queue: {problem}\n")
    return 1 if problem else 0


def _problem(path: str, max_age: float) -> str:
    try:
        found = os.lstat(path)
    except (OSError, ValueError) as error:
        return f"the heartbeat file {path!r} cannot be read: {error}"
    if not stat.S_ISREG(found.st_mode):
        return f"the heartbeat file {path!r} is not a regular file"
    if not _is_believed(found.st_uid):
        return (
            f"the heartbeat file {path!r} belongs to the user with the id {found.st_uid}: ask as "
            "the user of the supervisor, or as root"
        )
    age = time.time() - found.st_mtime
    if age > max_age:
        return f"the supervisor last touched {path!r} {age:.0f} s ago"
    if age < -MOST_AHEAD:
        return f"the time of {path!r} lies {-age:.0f} s in the future"
    return ""


def _is_believed(owner: int) -> bool:
    """Whether a file of this user is one of the supervisor, as far as the system knows."""
    return not hasattr(os, "geteuid") or os.geteuid() in (0, owner)
