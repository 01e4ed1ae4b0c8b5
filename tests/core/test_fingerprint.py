"""Fingerprints: the same for failures with the same cause."""

from __future__ import annotations

import subprocess
import sys
import time
from datetime import datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steady_queue_core.fingerprint import (
    LONGEST_PATTERN,
    fingerprint_of,
    first_line,
    is_fingerprint,
    pattern_of,
)

ERROR, TASK = "builtins.ValueError", "shop.tasks.ship"
#: Words without digits that are no hexadecimal numbers.
WORDS = st.lists(
    st.text("ghijklmnopqrstuvwxyzé,:()", min_size=1, max_size=12), min_size=1, max_size=5
).map(" ".join)
#: Text that may be quoted in any way.
QUOTED = st.text(st.characters(exclude_characters="'\"`“”«»\0\n\v\f\r\x1c\x1d\x1e\x85\u2028\u2029"))


def of(message: str) -> str:
    return fingerprint_of(ERROR, message, TASK)


@pytest.mark.parametrize(
    ("message", "pattern"),
    [
        ("User 17 not found", "User ? not found"),
        ("can't parse 'x' of 12.5, -3", "can't parse ? of ?"),
        ("<Order object at 0x7f12ab34cd56>", "<Order object at ?>"),
        ("order 6f1a2b3c-dead-beef-cafe-abcdefabcdef is gone", "order ? is gone"),
        ("deadbeefcafe is gone", "? is gone"),
        ("cus_Nffr4x has no card", "? has no card"),
        ("late since 2026-01-31T12:00:00.123+02:00", "late since ?"),
        ("ids [1, 22, 333] are gone", "ids [?] are gone"),
        ("host 10.0.0.17:5432 refused", "host ? refused"),
        ('column "a" of relation "b"', "column ? of relation ?"),
        ("no field «nom» in “x”, `y`", "no field ? in ?"),
        ("it's 'it's' and an unclosed 'quote of 5", "it's ? and an unclosed ?"),
        ("\n \t\n  first  of\tall \nsecond 2", "first of all"),
        ("5é and é5", "?é and é?"),
        ("", ""),
        ("défacé, a façade", "défacé, a façade"),
    ],
)
def test_what_differs_is_blanked(message: str, pattern: str) -> None:
    assert pattern_of(message) == pattern


@pytest.mark.parametrize(
    ("parts", "fingerprint"),
    [
        ((ERROR, "User 17 not found", TASK), "51bc3484a6b6bad3"),
        (("a.B", "", "t"), "396f2ad1e176ce1f"),
        (("a.B", "\ud800 \0 é", "t"), "94e76ee8a9e1dde9"),
    ],
)
def test_it_is_the_same_in_every_release(parts: tuple[str, str, str], fingerprint: str) -> None:
    assert fingerprint_of(*parts) == fingerprint


def test_it_is_the_same_in_every_process() -> None:
    code = "from steady_queue_core.fingerprint import fingerprint_of as f; print(f('a', 'b', 'c'))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == fingerprint_of("a", "b", "c")


@given(WORDS, st.integers() | st.floats(allow_nan=False, allow_infinity=False), st.integers())
def test_numbers_do_not_matter(words: str, one: float, other: int) -> None:
    assert of(f"{words} {one} {words}") == of(f"{words} {other} {words}")


@given(WORDS, st.uuids(), st.uuids())
def test_uuids_do_not_matter(words: str, one: UUID, other: UUID) -> None:
    assert of(f"{words} {one}") == of(f"{words} {other}") == of(f"{words} {str(one).upper()}")


@given(WORDS, st.binary(min_size=4, max_size=32), st.binary(min_size=4, max_size=32))
def test_hexadecimal_ids_do_not_matter(words: str, one: bytes, other: bytes) -> None:
    assert of(f"{words} {one.hex()}") == of(f"{words} {other.hex()}")
    assert of(f"{words} 0x{one.hex()}") == of(f"{words} 0x{other.hex().upper()}")


@given(WORDS, st.datetimes(), st.datetimes())
def test_times_do_not_matter(words: str, one: datetime, other: datetime) -> None:
    assert of(f"{words} {one.isoformat()}") == of(f"{words} {other.isoformat()}")


@given(WORDS, QUOTED, QUOTED, st.sampled_from(["''", '""', "``", "“”", "«»"]))
def test_quoted_text_does_not_matter(words: str, one: str, other: str, quotes: str) -> None:
    opening, closing = quotes

    def quoted(text: str) -> str:
        return f"{words} {opening}{text}{closing} {words}"

    assert of(quoted(one)) == of(quoted(other))


@given(WORDS, st.text(), st.text())
def test_lines_after_the_first_do_not_matter(words: str, one: str, other: str) -> None:
    assert of(f"{words}\n{one}") == of(f"{words}\n{other}") == of(f"\n\n{words}")


@given(WORDS, WORDS)
def test_the_words_matter(one: str, other: str) -> None:
    assert (of(one) == of(other)) == (one == other)


def test_the_class_and_the_task_matter() -> None:
    found = {
        of("no"),
        fingerprint_of("builtins.KeyError", "no", TASK),
        fingerprint_of(ERROR, "no", "shop.tasks.bill"),
    }
    assert len(found) == 3


@given(st.text(st.characters(codec=None)) | st.binary() | st.none() | st.integers())
def test_whatever_a_row_has_makes_one(value: object) -> None:
    for parts in ((value, "no", TASK), (ERROR, value, TASK), (ERROR, "no", value)):
        found = fingerprint_of(*parts)
        assert is_fingerprint(found)
        assert found == fingerprint_of(*parts)
    assert len(pattern_of(str(value))) <= LONGEST_PATTERN
    assert "\n" not in first_line(str(value))


@pytest.mark.parametrize(
    "part",
    ["a", "1", "a1", "a_", "'", "'a", "' ", '"', "`'\"", "?", "? ", "+-?", "0-", "f" * 8 + "-f-",
     "\n", " ", " \n", "\0", "\ud800", "é1"],
)  # fmt: skip
def test_a_megabyte_of_anything_takes_a_moment(part: str) -> None:
    message = part * (1_000_000 // len(part))
    began = time.thread_time()
    assert is_fingerprint(of(message))
    # It takes less than a millisecond; a search that goes back and forth takes seconds.
    assert time.thread_time() - began < 0.2


@pytest.mark.parametrize(
    "text",
    ["", "0" * 15, "0" * 17, "0123456789ABCDEF", "0123456789abcdeg", "0123456789abcdef\n",
     "\u0660" * 16],
)  # fmt: skip
def test_what_is_no_fingerprint(text: str) -> None:
    assert not is_fingerprint(text)
