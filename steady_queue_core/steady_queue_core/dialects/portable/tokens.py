"""The tokens of claims: each is greater than the last of its job, and none is given out again."""

from __future__ import annotations

import secrets

#: The low bits of a token are random. After a restore or an asynchronous failover the database
#: gives out ids again and counts from where it was; outcomes of its earlier life must not fit.
RANDOM_BITS = 32
#: Tokens are 64-bit integers, positive, so that a job may be claimed two thousand million times.
LARGEST = 2**63 - 1


def next_token(token: int) -> int:
    """Return the token of the next claim of a job whose last one had ``token``; 0: of the first."""
    count = (token >> RANDOM_BITS) + 1
    return (count << RANDOM_BITS | secrets.randbits(RANDOM_BITS)) & LARGEST
