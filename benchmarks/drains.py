"""The queues that workers empty, each full of jobs of one task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from benchmarks.adapters import Capabilities


@dataclass(frozen=True, kw_only=True)
class Drain:
    """One of these measures."""

    key: str
    """Of the rate; those of other figures begin with it."""
    title: str
    task: str
    needs: str = ""
    """The field of `Capabilities` that a competitor has to have."""
    share: float = 1.0
    """How many of `--jobs` it is filled with: fewer, where a job takes longer."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """What the project's settings read."""

    def fits(self, capabilities: Capabilities) -> bool:
        """Say whether a competitor can do this."""
        return not self.needs or bool(getattr(capabilities, self.needs))


DRAINS = (
    Drain(key="drain", title="no-op", task="noop"),
    Drain(key="drain_coroutine", title="coroutine", task="anoop", needs="coroutine"),
    Drain(
        key="drain_named",
        title="no-op, three named queues",
        task="noop",
        needs="queues",
        environment={"BENCHMARK_QUEUES": "urgent,default,slow"},
    ),
    Drain(
        key="drain_query",
        title="query and 5 ms, 10 threads",
        task="query",
        needs="threads",
        share=0.5,
        environment={"BENCHMARK_THREADS": "10", "BENCHMARK_CONNECTIONS": "stock"},
    ),
    Drain(key="drain_one_key", title="1 key, limit 1", task="one_key", needs="limits", share=0.1),
    Drain(
        key="drain_keys", title="100 keys, limit 1", task="hundred_keys", needs="limits", share=0.1
    ),
)
