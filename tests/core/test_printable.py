"""What is escaped in text that is printed, and what is left as it is."""

from __future__ import annotations

import sys
import unicodedata

import pytest

from steady_queue_core.listings.wording import clean, name
from steady_queue_core.printable import hanging, indented, printable, printable_lines

#: Letters without a glyph of their own, on which spelling depends.
JOINERS = "\u200c\u200d"


def test_a_line_is_neither_broken_nor_reordered_nor_holds_what_is_hidden() -> None:
    passing = []
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        breaks = len(f"a{character}b".splitlines()) > 1
        reorders = unicodedata.bidirectional(character) in {
            "LRE", "LRO", "RLE", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI",
        }  # fmt: skip
        controls = unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp"}
        if (breaks or reorders or controls) and printable(character) == character:
            passing.append(f"U+{code:04X}")
    assert passing == []


@pytest.mark.parametrize(
    "character",
    [*"\u061c\u200e\u200f\u200b\u00ad\u180e\u2060\u2064\u206a\ufeff\ufff9\ufffb", "\U000e0041"],
    ids=ascii,
)
def test_marks_that_nobody_sees_are_escaped_everywhere(character: str) -> None:
    escape = ascii(character)[1:-1]
    for escaped in (printable, printable_lines, clean, name):
        assert escaped(f"a{character}b") == f"a{escape}b"
    assert indented(character) == f"    {escape}"
    assert hanging(f"{character}\n{character}") == f"{escape}\n    {escape}"


@pytest.mark.parametrize(
    "text", ["señor Ünal", "日本語　全角", "a\u00a0b", "क्\u200dष", "👩\u200d💻", "\ue000"]
)
def test_what_people_write_is_left_as_it_is(text: str) -> None:
    assert printable(text) == clean(text) == text


def test_a_name_is_one_line_and_a_text_may_have_several() -> None:
    assert name("a\nb\tc") == "a\\nb\\tc"
    assert clean("a\nb\tc\r") == "a\nb\tc\\r"
