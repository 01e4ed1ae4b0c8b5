"""The options of payloads: ``TASKS[alias]["OPTIONS"]["payload"]``."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import UTC, date, datetime

from ..configuration.errors import ConfigurationError
from ..configuration.reader import Reader
from . import encryption


@dataclass(frozen=True, kw_only=True)
class PayloadOptions:
    """What is done to the arguments and results of a backend's jobs before they are stored.

    With none of it, payloads that something was done to can still be read.
    """

    compress_over: int | None = None
    """Size in bytes above which they are compressed, if that makes them smaller; None: never."""
    sign: bool = False
    """Whether they are signed, and unsigned ones are refused."""
    accept_unsigned_until: datetime | None = None
    """Until when unsigned ones are accepted nevertheless, by the host's clock; None: never."""
    encrypt: bool = False
    """Whether they are encrypted."""
    encryption_keys: tuple[str, ...] = ()
    """Keys of ``Fernet.generate_key()``, of which the first encrypts; empty: derived from
    ``SECRET_KEY``."""

    @classmethod
    def parse(cls, where: str, mapping: object) -> PayloadOptions:
        """Read the dict at ``where`` in the settings.

        Raises ConfigurationError for unknown keys and wrong values, all of them at once, and if
        encryption is asked for and its package is not installed.
        """
        defaults = {each.name: each.default for each in fields(cls)}
        reader = Reader.for_mapping(where, mapping, defaults)
        options = cls(
            compress_over=(
                reader.integer("compress_over", least=0) if reader.given("compress_over") else None
            ),
            sign=reader.flag("sign"),
            accept_unsigned_until=_read_date(reader, "accept_unsigned_until"),
            encrypt=reader.flag("encrypt"),
            encryption_keys=_read_keys(reader),
        )
        _require_sense(reader, options)
        reader.finish()
        return options

    def refuses_unsigned(self) -> bool:
        """Whether a payload without a signature is refused now."""
        if not self.sign:
            return False
        until = self.accept_unsigned_until
        return until is None or datetime.now(UTC) >= until


def read_payload(reader: Reader, name: str) -> PayloadOptions | None:
    """Read the options of payloads among those of a backend."""
    try:
        return PayloadOptions.parse(reader.path(name), reader.values[name])
    except ConfigurationError as error:
        reader.problems += error.problems
        return None


def _require_sense(reader: Reader, options: PayloadOptions) -> None:
    if options.encrypt and not encryption.is_available():
        reader.problems.append(f"{reader.path('encrypt')} {encryption.MISSING}")
    if options.accept_unsigned_until is not None and not options.sign:
        reader.problems.append(
            f"{reader.path('accept_unsigned_until')}: without {reader.path('sign')}, unsigned "
            "payloads are always accepted"
        )


def _read_date(reader: Reader, name: str) -> datetime | None:
    value = reader.values[name]
    if value is None:
        return None
    if isinstance(value, datetime):
        if value.tzinfo is not None:
            return value
    elif isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    reader.wrong(name, "a date, which begins at midnight UTC, or a datetime with a time zone")
    return None


def _read_keys(reader: Reader) -> tuple[str, ...]:
    keys = reader.values["encryption_keys"]
    if not isinstance(keys, (list, tuple)):
        # The message does not quote the value: it is a secret.
        reader.problems.append(f"{reader.path('encryption_keys')}: expected a list of keys")
        return ()
    wrong = [position for position, key in enumerate(keys) if not encryption.is_key(key)]
    reader.problems += [
        f"{reader.path('encryption_keys')}[{position}]: expected a key as Fernet.generate_key() "
        "makes it, as a string: 32 bytes in Base64"
        for position in wrong
    ]
    return () if wrong else tuple(keys)
