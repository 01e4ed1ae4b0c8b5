"""What tests have in common that stay together."""

from __future__ import annotations


def scope_of(nodeid: str) -> str:
    """Return what the tests that stay in one worker share: their class or module, or what
    ``million_rows`` says."""
    return million_rows(nodeid) or nodeid.partition("[")[0].rpartition("::")[0]


def million_rows(nodeid: str) -> str | None:
    """Return what tests of the same million rows have in common: one process builds these once."""
    if not nodeid.startswith("tests/million/"):
        return None
    database = nodeid.rstrip("]").rpartition("-")[2].rpartition("[")[2]
    return f"tests/million/{database}"


def waits(scope: str) -> bool:
    """Say whether these tests wait for other processes for most of their time."""
    return scope.startswith("tests/processes/")
