"""Rendezvous hashing: the same shard for a key, everywhere and for ever."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from steady_queue_core.sharding.routing import shard_of

keys = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=300)
aliases = st.lists(st.text(min_size=1, max_size=20), min_size=1, max_size=12, unique=True)

#: Where jobs are in databases out there. These never change.
KNOWN = {
    "": "c", "1": "c", "2": "b", "3": "b", "4": "a", "5": "b", "6": "a", "7": "b",
    "shop.customer/17": "b", "Grüße": "a", "x" * 1000: "a",
}  # fmt: skip


def test_known_keys_stay_where_they_are() -> None:
    assert {key: shard_of(key, ["a", "b", "c"]) for key in KNOWN} == KNOWN


def test_another_process_finds_the_same() -> None:
    code = (
        "from steady_queue_core.sharding.routing import shard_of\n"
        "print(''.join(shard_of(str(n), ['a', 'b', 'c']) for n in range(200)))"
    )
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    told = subprocess.run(
        [sys.executable, "-c", _standing_alone(code)],
        env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
        capture_output=True, text=True, check=True, timeout=60,
    ).stdout.strip()  # fmt: skip
    assert told == "".join(shard_of(str(number), ["a", "b", "c"]) for number in range(200))


def _standing_alone(code: str) -> str:
    # The package imports its backend, which needs settings.
    return f"from django.conf import settings\nsettings.configure()\n{code}"


@given(keys, aliases, st.randoms())
def test_the_order_of_the_shards_does_not_matter(
    key: str, shards: list[str], random: Random
) -> None:
    shuffled = list(shards)
    random.shuffle(shuffled)
    assert shard_of(key, shards) == shard_of(key, shuffled)


@given(st.lists(keys, max_size=50), aliases, st.text(min_size=1, max_size=20))
def test_a_new_shard_takes_keys_and_moves_none_among_the_others(
    some: list[str], shards: list[str], new: str
) -> None:
    before = {key: shard_of(key, shards) for key in some}
    after = {key: shard_of(key, [*shards, new]) for key in some}
    assert all(after[key] in (before[key], new) for key in some)


@given(st.lists(keys, max_size=50), aliases, st.data())
def test_a_shard_that_goes_leaves_the_keys_of_the_others_alone(
    some: list[str], shards: list[str], data: st.DataObject
) -> None:
    gone = data.draw(st.sampled_from(shards))
    left = [each for each in shards if each != gone]
    for key in some if left else ():
        before = shard_of(key, shards)
        assert before == gone or shard_of(key, left) == before


@given(st.integers(2, 10), st.integers(0, 10**12))
def test_keys_are_spread_evenly(number: int, first: int) -> None:
    shards = [f"shard-{n}" for n in range(number)]
    each = 300
    found = Counter(shard_of(str(first + n), shards) for n in range(each * number))
    # Seven standard deviations: it fails once in a hundred million runs.
    margin = 7 * each**0.5
    assert all(abs(found[shard] - each) < margin for shard in shards), found
