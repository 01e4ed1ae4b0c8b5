"""The fair key of a job, as it is shown."""

from __future__ import annotations

from typing import Any

from ..shown_row import Parts


def fair_key(job: Any, metadata: Any) -> Parts:
    """Return the key of a job in a fair queue."""
    return (metadata.fair,) if metadata.fair else ()
