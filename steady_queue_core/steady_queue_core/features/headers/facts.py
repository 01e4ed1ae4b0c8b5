"""Headers: short texts by name that middleware gives a job, such as the context of a trace."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Self

from ..fact import fact

#: Most headers of a job, and most characters of a name and of all names and values together.
MOST_HEADERS, LONGEST_NAME, MOST_CHARACTERS = 32, 128, 16_384


def checked_headers(headers: object) -> dict[str, str]:
    """Return a copy of headers. Raises ``ValueError`` that says what is wrong with them."""
    if not isinstance(headers, Mapping):
        raise ValueError(f"headers are a dict of names and texts, not {type(headers).__name__}")
    for name, value in headers.items():
        if not (isinstance(name, str) and name.isascii() and name.isprintable() and name):
            raise ValueError(f"the name of a header is printable ASCII text, not {name!r:.100}")
        if len(name) > LONGEST_NAME:
            raise ValueError(f"the header {name[:20]!r}... has a longer name than {LONGEST_NAME}")
        if not isinstance(value, str):
            raise ValueError(f"the header {name!r} is text, not {type(value).__name__}")
    if len(headers) > MOST_HEADERS:
        raise ValueError(f"a job has {MOST_HEADERS} headers at most, not {len(headers)}")
    length = sum(len(name) + len(value) for name, value in headers.items())
    if length > MOST_CHARACTERS:
        raise ValueError(f"the headers of a job have {MOST_CHARACTERS} characters, not {length}")
    return dict(headers)


def fitting_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return as many headers as a job can have, the shortest first."""
    found: dict[str, str] = {}
    for name in sorted(headers, key=lambda name: len(str(headers[name]))):
        with suppress(ValueError):
            found = checked_headers({**found, name: headers[name]})
    return found


def are_headers(value: Any) -> bool:
    """Whether what a row holds may be headers."""
    try:
        checked_headers(value)
    except ValueError:
        return False
    return True


@dataclass(frozen=True, kw_only=True)
class HeaderFacts:
    """What a job keeps."""

    __slots__ = ()

    #: What middleware has given the job on its way.
    headers: Mapping[str, str] = fact(is_valid=are_headers, default_factory=dict)

    def carrying(self, headers: Mapping[str, str]) -> Self:
        """Return these metadata with ``headers`` beside those that there are, or in their place.
        Raises ``ValueError``."""
        return replace(self, headers=checked_headers({**self.headers, **headers}))
