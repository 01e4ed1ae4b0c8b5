"""The stored figures, and the interpreter that they were taken with."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

FILE = Path(__file__).with_name("stored.json")
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"

Stored = Mapping[str, Mapping[str, float]]
"""Figures by database."""


def read() -> Stored:
    """Return the stored figures; raise where they say nothing about this interpreter."""
    content = json.loads(FILE.read_text())
    if content["python"] != PYTHON:
        raise RuntimeError(
            f"the figures were stored with Python {content['python']}, and this is {PYTHON}: what"
            " a job costs depends on it"
        )
    stored: Stored = content["figures"]
    return stored


def write(figures: Stored) -> None:
    """Replace the stored figures."""
    rounded = {
        database: {name: round(value, 4) for name, value in sorted(found.items())}
        for database, found in figures.items()
    }
    FILE.write_text(json.dumps({"python": PYTHON, "figures": rounded}, indent=2) + "\n")
