"""Tokens of claims. Each is greater than the job's last one, and none is used twice."""

from __future__ import annotations

import os

#: The low bits of a token are random. After a restore or an asynchronous failover the database
#: assigns the same ids and counts again, and outcomes from before must not match the new claims.
RANDOM_BYTES = 4
RANDOM_BITS = 8 * RANDOM_BYTES
#: Tokens are positive 64-bit integers, so a job can be claimed two thousand million times.
LARGEST = 2**63 - 1
#: The least token of a claim. A job that was never claimed has a smaller one: 0, or a little more
#: if it was changed while it waited.
FIRST_TOKEN = 1 << RANDOM_BITS


def claims_before(token: int) -> int:
    """Return how often a job with this token has been claimed."""
    return token >> RANDOM_BITS


def next_token(token: int) -> int:
    """Return the token of a claim of a job whose last token is ``token``, or 0 at first."""
    count = claims_before(token) + 1
    return (count << RANDOM_BITS | int.from_bytes(os.urandom(RANDOM_BYTES))) & LARGEST
