"""Task arguments and results as JSON text, and back again.

A job keeps its arguments in a text column, as ASCII JSON written by :func:`encode_call`.
Text, because every database changes some value of its own JSON type: one rounds large
integers, one turns ``-0.0`` into ``0``, one reorders the keys of a dict.

What comes back has the type and the value of what went in: ``None``, ``bool``, ``int``,
``float``, ``str``, ``list``, ``dict``, ``tuple``, ``set``, ``frozenset``, ``bytes``,
``datetime``, ``date``, ``time``, ``timedelta``, ``Decimal``, ``UUID``, and model instances,
which are stored by primary key and fetched anew. An instance of a subclass is stored as its
base (a ``SafeString`` as ``str``, a named tuple as ``tuple``). Anything else is refused with
a :class:`TaskArgumentError` when the task is enqueued, never when it runs.

Reading trusts nothing: the tags are a closed set, no name found in the text is imported,
and text that is not ours is a :class:`DeserializationError`.
"""

from __future__ import annotations

from .canonical import canonical
from .decoding import decode, decode_call, has_models, has_references
from .encoding import encode, encode_call
from .errors import DeserializationError, TaskArgumentError
from .limits import DEFAULT_LIMITS, PayloadLimits
from .parent_result import ParentResult
from .references import ModelReference

__all__ = [
    "DEFAULT_LIMITS",
    "DeserializationError",
    "ModelReference",
    "ParentResult",
    "PayloadLimits",
    "TaskArgumentError",
    "canonical",
    "decode",
    "decode_call",
    "encode",
    "encode_call",
    "has_models",
    "has_references",
]
