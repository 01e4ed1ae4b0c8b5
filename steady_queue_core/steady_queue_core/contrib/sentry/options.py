"""The options of reporting: ``STEADY_QUEUE_SENTRY``."""

from __future__ import annotations

from dataclasses import dataclass, fields

from ...configuration.reader import Reader


@dataclass(frozen=True, kw_only=True)
class SentryOptions:
    """What is reported."""

    enabled: bool = True
    """Whether anything is."""
    report_retries: bool = True
    """Whether failures after which the job runs again are reported, as warnings."""
    propagate_traces: bool = True
    """Whether an attempt is part of the trace that its job was enqueued in."""
    monitors: bool = True
    """Whether the runs of recurring tasks check in."""

    @classmethod
    def parse(cls, where: str, mapping: object) -> SentryOptions:
        """Read the dict at ``where``. Raises ConfigurationError for unknown keys and wrong values,
        all of them at once."""
        defaults = {each.name: each.default for each in fields(cls)}
        reader = Reader.for_mapping(where, mapping, defaults)
        options = cls(**{name: reader.flag(name) for name in defaults})
        reader.finish()
        return options
