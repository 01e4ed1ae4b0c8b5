"""The walk through values that are to be stored."""

from __future__ import annotations

from binascii import b2a_base64
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from json import dumps
from math import isfinite
from typing import Any, Final
from uuid import UUID

from . import moments, references, tags
from .parent_result import ParentResult
from .paths import ELEMENT, PRIMARY_KEY, type_name
from .references import ModelReference
from .refusals import unsupported
from .walk import Walk

#: Python's default limit for reading integers from text.
_MOST_DIGITS = 4300
_MOST_BITS = (10**_MOST_DIGITS).bit_length()
#: Integers up to this size are under every limit on digits that Python lets one set.
_SMALL_BITS = 2000

#: Characters that even an empty tagged value takes: ``{"__sq_set__":[]}``.
_TAGGED = 16


class Encoder(Walk):
    """Turns values into what JSON can write, once, and refuses what cannot be stored.

    Instances of subclasses are read through the methods of their base, never through their own.
    """

    __slots__ = ()

    def value(self, value: Any) -> Any:
        """Return the stored form of ``value``."""
        store = _STORES.get(type(value))
        if store is None:
            return self._value_by_base(value)
        return store(self, value)

    def call(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the stored form of the arguments of a call, each as deep as one value may be."""
        self._deepest = self._limits.max_depth + 1
        self._root = "args"
        positional = self._sequence(args, args, len(args))
        self._root = "kwargs"
        for name in kwargs:
            if not issubclass(type(name), str):
                raise self._refusal(f"a name of type {type_name(type(name))} is not a str.")
        named = self._mapping(kwargs, kwargs, kwargs.items(), len(kwargs))
        return {"args": positional, "kwargs": named}

    # Every method below returns what JSON can write: exact types, nothing of the user's own.

    def _value_by_base(self, value: Any) -> Any:
        for base in type(value).__mro__:
            store = _STORES.get(base)
            if store is not None:
                return store(self, value)
        if references.is_instance(value):
            return self._reference(references.reference_to(value))
        raise self._refusal(unsupported(value))

    def _none_or_bool(self, value: bool | None) -> bool | None:
        self._take(4)
        return value

    def _int(self, value: int) -> int:
        bits = int.bit_length(value)
        if bits > _SMALL_BITS and not _has_readable_digits(value):
            raise self._refusal(
                f"an integer of {bits:,} bits has too many digits. Pass it as bytes."
            )
        self._size += 1 + (bits - 1) * 3 // 10
        if self._size > self._max_bytes:
            raise self._exhausted()
        return int.__int__(value)

    def _float(self, value: float) -> float:
        if not isfinite(value):
            raise self._refusal("NaN and infinity have no JSON form. Pass None, or a str.")
        self._take(3)
        return float.__float__(value)

    def _str(self, value: str) -> str:
        self._size += 2 + str.__len__(value)
        if self._size > self._max_bytes:
            raise self._exhausted()
        text = value if type(value) is str else str.__str__(value)
        if "\0" in text:
            raise self._refusal(
                "text with a NUL character cannot be kept by every database. Pass bytes."
            )
        if not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError as error:
                raise self._refusal(
                    f"the text has a lone surrogate (at index {error.start:,}) and is not valid "
                    "Unicode. Pass bytes, or decode it with another error handler."
                ) from None
        return text

    def _list(self, value: list[Any]) -> list[Any]:
        return self._sequence(value, list.__iter__(value), list.__len__(value))

    def _tuple(self, value: tuple[Any, ...]) -> Any:
        return {tags.TUPLE: self._sequence(value, tuple.__iter__(value), tuple.__len__(value))}

    def _set(self, value: set[Any]) -> Any:
        return {tags.SET: self._elements(value, set.__iter__(value), set.__len__(value))}

    def _frozenset(self, value: frozenset[Any]) -> Any:
        items, length = frozenset.__iter__(value), frozenset.__len__(value)
        return {tags.FROZENSET: self._elements(value, items, length)}

    def _dict(self, value: dict[Any, Any]) -> Any:
        if issubclass(type(value), OrderedDict):  # keeps an order of its own
            items: Iterable[tuple[Any, Any]] = OrderedDict.items(value)  # type: ignore[arg-type]  # It is one, by the line above.
        else:
            items = dict.items(value)
        return self._mapping(value, dict.__iter__(value), items, dict.__len__(value))

    def _bytes(self, value: bytes) -> Any:
        self._take(_TAGGED + bytes.__len__(value) * 4 // 3)
        return {tags.BYTES: b2a_base64(value, newline=False).decode("ascii")}

    def _datetime(self, value: datetime) -> Any:
        return self._tagged(tags.DATETIME, self._moment(datetime, value))

    def _time(self, value: time) -> Any:
        return self._tagged(tags.TIME, self._moment(time, value))

    def _date(self, value: date) -> Any:
        return self._tagged(tags.DATE, date.isoformat(value))

    def _timedelta(self, value: timedelta) -> Any:
        return self._tagged(tags.TIMEDELTA, [value.days, value.seconds, value.microseconds])

    def _decimal(self, value: Decimal) -> Any:
        if not Decimal.is_finite(value):
            raise self._refusal("a Decimal must be finite. Pass None, or a str.")
        text = Decimal.__str__(value)
        self._take(_TAGGED + len(text))
        return {tags.DECIMAL: text}

    def _uuid(self, value: UUID) -> Any:
        return self._tagged(tags.UUID, UUID.__str__(value))

    def _reference(self, value: ModelReference) -> Any:
        if value.pk is None:
            raise self._refusal(
                f"the {value.model} instance is not saved. Save it first, and enqueue the task "
                "after that."
            )
        self._enter(value, 3)
        self._steps[-1] = PRIMARY_KEY
        stored = [self._str(value.app_label), self._str(value.model), self.value(value.pk)]
        if value.using:
            stored.append(self._str(value.using))
        self._leave()
        return {tags.MODEL: stored}

    def _result(self, value: ParentResult) -> Any:
        return self._tagged(tags.RESULT, value.number)

    def _moment(self, kind: type[moments.Moment], value: moments.Moment) -> str | list[Any]:
        try:
            return moments.store(kind, value)
        except Exception:  # a tzinfo of the user's own may raise anything
            raise self._refusal(
                f"the time zone of the {kind.__name__} gives no offset. Use UTC or a zone of "
                "zoneinfo."
            ) from None

    def _tagged(self, tag: str, stored: Any) -> Any:
        self._take(_TAGGED)
        return {tag: stored}

    def _sequence(self, value: object, items: Iterable[Any], length: int) -> list[Any]:
        self._enter(value, length)
        steps, stored = self._steps, []
        for index, item in enumerate(items):
            steps[-1] = index
            stored.append(self.value(item))
        self._leave()
        return stored

    def _elements(self, value: object, items: Iterable[Any], length: int) -> list[Any]:
        self._enter(value, length)
        self._steps[-1] = ELEMENT
        stored = [self.value(item) for item in items]
        self._leave()
        # Equal sets get equal text, though each process iterates in an order of its own.
        try:
            stored.sort()
        except TypeError:
            stored.sort(key=dumps)
        return stored

    def _mapping(
        self, value: object, keys: Iterable[Any], items: Iterable[tuple[Any, Any]], length: int
    ) -> Any:
        self._enter(value, 2 * length)
        steps = self._steps
        if _are_plain(keys):
            named = {}
            for key, item in items:
                steps[-1] = key
                named[self._str(key)] = self.value(item)
            self._leave()
            return named
        pairs: list[Any] = []
        for key, item in items:
            steps[-1] = key
            pairs += (self.value(key), self.value(item))
        self._leave()
        return {tags.DICT: pairs}


def _has_readable_digits(value: int) -> bool:
    if int.bit_length(value) > _MOST_BITS:
        return False
    try:
        return len(int.__repr__(value).lstrip("-")) <= _MOST_DIGITS
    except ValueError:  # this interpreter is set to read even fewer
        return False


def _are_plain(keys: Iterable[Any]) -> bool:
    """Say whether ``keys`` can be the keys of a JSON object that is not taken for a tag."""
    for key in keys:
        if type(key) is not str:
            if not issubclass(type(key), str):
                return False
            key = str.__str__(key)
        if key.startswith(tags.PREFIX):
            return False
    return True


#: By exact type; an instance of a subclass takes the first of its bases that is listed.
_STORES: Final[dict[type, Callable[[Encoder, Any], Any]]] = {
    type(None): Encoder._none_or_bool,
    bool: Encoder._none_or_bool,
    int: Encoder._int,
    float: Encoder._float,
    str: Encoder._str,
    list: Encoder._list,
    tuple: Encoder._tuple,
    set: Encoder._set,
    frozenset: Encoder._frozenset,
    dict: Encoder._dict,
    bytes: Encoder._bytes,
    datetime: Encoder._datetime,
    date: Encoder._date,
    time: Encoder._time,
    timedelta: Encoder._timedelta,
    Decimal: Encoder._decimal,
    UUID: Encoder._uuid,
    ModelReference: Encoder._reference,
    ParentResult: Encoder._result,
}
