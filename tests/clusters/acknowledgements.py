"""What the enqueuer was told."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Acknowledgements:
    """Numbers of jobs, with the job that a call has returned, and how often calls were retried."""

    jobs: dict[int, str] = field(default_factory=dict)
    retries: Counter[int] = field(default_factory=Counter)

    @classmethod
    def read(cls, path: Path) -> Acknowledgements:
        found = cls()
        for line in path.read_text().splitlines() if path.exists() else []:
            word, _, number, *job = line.split()
            if word == "ack":
                found.jobs[int(number)] = job[0]
            else:
                found.retries[int(number)] += 1
        return found
