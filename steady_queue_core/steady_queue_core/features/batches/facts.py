"""What a job keeps of the batch that it belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..fact import fact
from .link import Link


@dataclass(frozen=True, kw_only=True)
class BatchFacts:
    """What a job keeps of what it has to do with a batch."""

    __slots__ = ()

    #: The values of a ``Link``.
    batch: tuple[Any, ...] | None = fact(
        is_valid=lambda value: Link.of(value) is not None, changes=True
    )


@dataclass(frozen=True, kw_only=True)
class PlaceFacts:
    """What a job keeps of its graph, where payloads are signed."""

    __slots__ = ()

    #: The place of the job in its graph, and which places the results that its arguments refer to
    #: come from, by their numbers; see ``batches.places``.
    node: str | None = fact(is_valid=lambda value: isinstance(value, str), is_shared=False)
    sources: Mapping[str, Any] = fact(
        is_valid=lambda value: isinstance(value, dict), default_factory=dict
    )
