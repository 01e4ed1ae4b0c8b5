"""Which statements of SQL write, as far as their text tells."""

from __future__ import annotations

import re
from typing import Any

#: What may come before the first word.
_LEAD = r"(?:[\s(]|--[^\n]*\n|/\*.*?\*/)*+"
_WORD = re.compile(rf"{_LEAD}(?:INSERT|UPDATE|DELETE|REPLACE|MERGE|TRUNCATE)\b", re.I | re.S)
_QUERY = re.compile(rf"{_LEAD}WITH\b", re.I | re.S)
#: What writes within, or after, common table expressions; other than ``FOR UPDATE``.
_PART = re.compile(
    r"\b(?:(?:INSERT|MERGE|REPLACE)\s+INTO|(?<!FOR\s)(?<!KEY\s)UPDATE|DELETE\s+FROM)\s", re.I
)


def is_write(sql: Any, connection: Any) -> bool:
    """Whether a statement that is executed on ``connection`` changes rows."""
    text = _text_of(sql, connection)
    if _WORD.match(text):
        return True
    return _QUERY.match(text) is not None and _PART.search(text) is not None


def _text_of(sql: Any, connection: Any) -> str:
    if isinstance(sql, bytes):
        return sql.decode(errors="replace")
    # Those of psycopg.sql are put together by the driver.
    as_string = getattr(sql, "as_string", None)
    return str(sql if as_string is None else as_string(connection.connection))
