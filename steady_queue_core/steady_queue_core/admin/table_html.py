"""Tables as HTML, without the end tags and spaces that a page of many rows can do without."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from . import texts

#: Names up to this length are not cut in any column, and need no title.
MOST_UNCUT = 22


@dataclass(frozen=True)
class Table:
    """Rows of cells, the first of which says what a row is of. The heading with the id ``key``
    says what all are of. Cells that are no safe strings are escaped."""

    key: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    #: What else the element around it is, for the style sheet.
    kind: str = "sq-wide"

    @property
    def html(self) -> SafeString:
        """The table, which can be scrolled by the keyboard as well where it is too wide."""
        # End tags are optional here, and so is what the headings of such a table are of.
        return format_html(
            '<div class="{}" role="group" aria-labelledby="{}" tabindex="0">'
            "<table><thead><tr>{}<tbody>{}</table></div>",
            self.kind,
            self.key,
            format_html_join("", "<th>{}", ((each,) for each in self.heads)),
            format_html_join("", "<tr><th>{}{}", (_row(*each) for each in self.rows)),
        )


def _row(first: str, *others: str) -> tuple[str, SafeString]:
    return first, format_html_join("", "<td>{}", ((each,) for each in others))


def bad(words: str, is_bad: bool = True) -> str:
    """Return what asks for attention."""
    return format_html('<b class="sq-bad">{}</b>', words) if is_bad else words


def hidden(words: str) -> SafeString:
    """Return what only screen readers tell."""
    return format_html('<span class="visually-hidden">{}</span>', words)


def link(address: str, words: str) -> str:
    """Return words that lead to an address, or the words alone if it is empty."""
    return format_html('<a href="{}">{}</a>', address, words) if address else words


def titled(words: str, title: str) -> str:
    """Return words with a title, unless they say the same and are short enough not to be cut."""
    if words == title and len(words) <= MOST_UNCUT and words.isascii():
        return words
    return format_html('<span title="{}">{}</span>', title, words)


def named(value: object) -> str:
    """Return a name, with all of it as the title where it may be cut."""
    text = str(value)
    return titled(texts.name(text), texts.clean(text, texts.MOST_TITLE))
