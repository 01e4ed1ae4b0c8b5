"""Which shard has a key: rendezvous hashing."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable


def shard_of(key: str, shards: Iterable[str]) -> str:
    """Return the one of ``shards`` that has ``key``, whatever their order.

    The same in every process and version: jobs are looked for where they were stored. A shard that
    is added takes its part of the keys of each of the others, and no other key moves.
    """
    return max(shards, key=lambda shard: (_score(key, shard), shard))


def _score(key: str, shard: str) -> bytes:
    # No key has a NUL character.
    return hashlib.sha256(f"{key}\0{shard}".encode(errors="surrogatepass")).digest()
