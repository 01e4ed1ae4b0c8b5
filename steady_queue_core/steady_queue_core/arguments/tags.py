"""The names under which values are stored that JSON has no notation for.

A tagged value is an object with a single key, its tag: ``{"__sq_date__": "2025-03-30"}``.
A dict of the user's that has a key with the same prefix is itself stored under ``DICT``, so
no data can pass for a tag.
"""

from __future__ import annotations

from typing import Final

PREFIX: Final = "__sq_"

BYTES: Final = "__sq_bytes__"
DATE: Final = "__sq_date__"
DATETIME: Final = "__sq_datetime__"
DECIMAL: Final = "__sq_decimal__"
DICT: Final = "__sq_dict__"
FROZENSET: Final = "__sq_frozenset__"
MODEL: Final = "__sq_model__"
RESULT: Final = "__sq_result__"
SET: Final = "__sq_set__"
TIME: Final = "__sq_time__"
TIMEDELTA: Final = "__sq_timedelta__"
TUPLE: Final = "__sq_tuple__"
UUID: Final = "__sq_uuid__"
