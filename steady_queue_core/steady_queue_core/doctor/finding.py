"""Finding: one thing that the doctor has found; and the words of its sentences and commands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from shlex import quote

from ..configuration.queues import LONGEST_NAME
from ..dialects import INFO, PROBLEM, WARNING
from ..listings.counts import BoundedCount
from ..printable import printable
from .codes import CODES

SEVERITIES = (PROBLEM, WARNING, INFO)


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong, or worth knowing, and what to do about it."""

    #: What kind of finding it is; see ``codes``.
    code: str
    #: ``problem``: jobs do not run, or will not. ``warning``: they may not, or late. ``info``.
    severity: str
    #: One or two sentences; all names in it are printable.
    text: str
    #: What to do; empty if there is nothing to be done.
    remedy: str = ""
    #: The alias of the database; empty if it concerns none in particular.
    database: str = ""

    def as_json(self) -> dict[str, str]:
        """Return the values by name."""
        return {
            "code": self.code,
            "severity": self.severity,
            "text": self.text,
            "remedy": self.remedy,
            "database": self.database,
        }


def problem(code: str, text: str, remedy: str) -> Finding:
    """Return a finding because of which jobs do not run."""
    return Finding(code, PROBLEM, text, remedy)


def warning(code: str, text: str, remedy: str) -> Finding:
    """Return a finding because of which jobs may not run, or may be late."""
    return Finding(code, WARNING, text, remedy)


def info(code: str, text: str, remedy: str = "") -> Finding:
    """Return a finding that is worth knowing."""
    return Finding(code, INFO, text, remedy)


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings with those first that explain most."""
    return sorted(findings, key=place)


def place(finding: Finding) -> tuple[int, int]:
    """Return what sorts a finding among others."""
    known = finding.severity in SEVERITIES
    severity = SEVERITIES.index(finding.severity) if known else len(SEVERITIES)
    # Those of other dialects have codes of their own.
    code = CODES.index(finding.code) if finding.code in CODES else len(CODES)
    return severity, code


def many(number: int | BoundedCount, one: str, more: str = "") -> str:
    """Return a number with the words for ``one`` or ``more`` such things."""
    count = number if isinstance(number, BoundedCount) else BoundedCount(number)
    words = one if count.exact and count.number == 1 else more or f"{one}s"
    return f"{count.text} {words}"


def path_of(error: type[BaseException]) -> str:
    """Return what failed jobs have as the class of such an error."""
    return f"{error.__module__}.{error.__qualname__}"


def command(first: str, *values: object, options: Sequence[str] = ()) -> str:
    """Return a command line that can be pasted, whatever is in its values; ``first`` is a
    subcommand, or an option for the one value."""
    whole = [printable(str(each)[:LONGEST_NAME]) for each in values]
    if not any(each.startswith("-") for each in whole):
        words = [first, *whole, *options]
    elif first.startswith("-"):
        words = ["=".join([first, *whole]), *options]
    else:
        words = [first, *options, "--", *whole]
    return " ".join(("python manage.py steady_queue", *map(quote, words)))
