"""Chains: jobs of one concurrency key that a process runs one after the other under one permit."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from .records import ClaimedJob


class Chain(NamedTuple):
    """The claims of one key that hold permits: what follows them is in the same queue."""

    key: str
    queue_name: str
    holders: list[ClaimedJob]


def chains_of(claims: Iterable[ClaimedJob]) -> list[Chain]:
    """Return a chain for each key, in the order of the keys.

    Of claims of one key in several queues, those in the queue of the first one are in the chain.
    """
    chains: dict[str, Chain] = {}
    for claim in claims:
        key = claim.concurrency_key
        if key is None:
            continue
        chain = chains.setdefault(key, Chain(key, claim.queue_name, []))
        if claim.queue_name == chain.queue_name:
            chain.holders.append(claim)
    return [chains[key] for key in sorted(chains)]


def chained(holders: Sequence[ClaimedJob], claims: Iterable[ClaimedJob]) -> Iterator[ClaimedJob]:
    """Yield ``claims`` of a key, in order, each with the job that it follows: those of one holder
    come in turn with those of the others."""
    ends = deque(holder.job_id for holder in holders)
    for claim in claims:
        yield claim._replace(follows=ends.popleft())
        ends.append(claim.job_id)
