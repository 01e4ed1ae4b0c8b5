"""Finding: one thing that the doctor has found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..dialects import INFO, PROBLEM, WARNING
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
