"""The server: whether it is MySQL or MariaDB, its version, and whether it is a node of Galera."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from django.db import DatabaseError
from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import DialectUnsupported

from .errors import error_number

MINIMUM_MYSQL = (8, 4)
MINIMUM_MARIADB = (10, 6)
#: What announces itself as MySQL, or speaks its protocol, by what its version or comment says. They
#: ignore SKIP LOCKED, or lock otherwise: two workers might claim the same job.
IMITATIONS = (
    "TiDB", "OceanBase", "Vitess", "PlanetScale", "SingleStore", "MemSQL", "Dolt", "Doris",
    "StarRocks",
)  # fmt: skip

# Only MariaDB reads the last comment, and knows the variable, unless it was built without Galera.
ASK = "SELECT VERSION(), @@max_allowed_packet, @@version_comment /*M! , @@wsrep_on */"
ASK_WITHOUT_GALERA = "SELECT VERSION(), @@max_allowed_packet, @@version_comment"
UNKNOWN_VARIABLE = 1193


@dataclass(frozen=True, slots=True)
class Server:
    """Facts about a server, read once for each connection."""

    #: As ``VERSION()`` gives it.
    text: str
    version: tuple[int, ...]
    is_mariadb: bool
    #: The largest packet that the server accepts, in bytes.
    max_packet: int
    #: Whether it is a node of a Galera cluster, which may abort a transaction at any time.
    is_galera: bool = False
    #: The name of another product that announces itself as MySQL; empty if it is none.
    imitation: str = ""

    @property
    def display_name(self) -> str:
        product = "MariaDB" if self.is_mariadb else "MySQL"
        return f"{product} {'.'.join(map(str, self.version))}"

    @property
    def exact_collation(self) -> str:
        """The collation that compares by code point and does not ignore trailing spaces."""
        return "utf8mb4_nopad_bin" if self.is_mariadb else "utf8mb4_0900_bin"

    @property
    def lock_to_share(self) -> str:
        """The clause that locks what is read against changes; ``SKIP LOCKED`` may follow it."""
        return "LOCK IN SHARE MODE" if self.is_mariadb else "FOR SHARE"

    def overwriting(self, column: str) -> str:
        """Return the clause that makes an INSERT overwrite ``column`` of existing rows."""
        if self.is_mariadb:  # It has no alias for the inserted row.
            return f"ON DUPLICATE KEY UPDATE {column} = VALUE({column})"
        # VALUES() is deprecated on MySQL, and with DEBUG the driver turns warnings into errors.
        return f"AS given ON DUPLICATE KEY UPDATE {column} = given.{column}"

    def require_supported(self) -> None:
        """Raise ``DialectUnsupported`` for a version that lacks what the statements need, and for
        another product."""
        if self.imitation:
            raise DialectUnsupported(
                f"The server is {self.imitation} ({self.text}), which speaks the protocol of MySQL "
                "and locks rows otherwise: two workers could run the same job. Keep the queue in a "
                "database of MySQL, MariaDB, PostgreSQL or SQLite."
            )
        minimum = MINIMUM_MARIADB if self.is_mariadb else MINIMUM_MYSQL
        if self.version[: len(minimum)] < minimum:
            raise DialectUnsupported(
                f"{self.display_name} is too old for Steady Queue; it needs MySQL "
                f"{_dotted(MINIMUM_MYSQL)} or newer, or MariaDB {_dotted(MINIMUM_MARIADB)} or "
                "newer. Upgrade the server, or keep the queue in another database."
            )


def server_of(connection: BaseDatabaseWrapper) -> Server:
    """Return the server of ``connection``; query it once for each connection.

    Raises ``DialectUnsupported`` for a version too old, or another product.
    """
    connection.ensure_connection()
    wrapper: Any = connection
    known = getattr(wrapper, "steady_queue_server", None)
    if known is None or known[0] is not wrapper.connection:
        known = (wrapper.connection, _ask(connection))
        wrapper.steady_queue_server = known
        correct_django(wrapper, known[1])
    server: Server = known[1]
    server.require_supported()
    return server


def exact_collation(connection: BaseDatabaseWrapper) -> str:
    return server_of(connection).exact_collation


def parse(text: str, max_packet: int, comment: str = "", wsrep_on: object = None) -> Server:
    """Return the server whose ``VERSION()`` is ``text``.

    MariaDB has ``wsrep_on``; builds of MySQL with Galera say so in their version's ``comment``.
    """
    # MariaDB may prefix its version with a MySQL version, for old replicas.
    found = re.search(r"\d+(?:\.\d+)+", text.removeprefix("5.5.5-"))
    version = tuple(map(int, found.group().split("."))) if found else ()
    is_galera = "wsrep" in comment.lower() if wsrep_on is None else bool(int(str(wsrep_on)))
    said = f"{text} {comment}".lower()
    imitation = next((name for name in IMITATIONS if name.lower() in said), "")
    return Server(text, version, "mariadb" in text.lower(), max_packet, is_galera, imitation)


def correct_django(wrapper: Any, server: Server) -> None:
    """Correct what Django believes about the server, which may be MariaDB taken for MySQL.

    The backend of MySQL's own driver reads the version from the handshake, where MariaDB calls
    itself MySQL 5.5.5. Django would truncate times to seconds, and lock rows without SKIP LOCKED.
    """
    if not server.is_mariadb or wrapper.mysql_is_mariadb:
        return
    wrapper.__dict__.update(
        mysql_is_mariadb=True,
        mysql_version=server.version,
        mysql_server_info=server.text,
        display_name="MariaDB",
    )
    for name in _derived_from_version(wrapper.features):
        del wrapper.features.__dict__[name]
    for known in ("data_type_check_constraints", "data_types_suffix", "operators"):
        wrapper.__dict__.pop(known, None)


def _derived_from_version(features: Any) -> list[str]:
    """Return the names of the features that Django has computed and cached so far."""
    return [name for name in vars(features) if hasattr(type(features), name)]


def _ask(connection: BaseDatabaseWrapper) -> Server:
    try:
        text, max_packet, *galera = _row(connection, ASK)
    except DatabaseError as error:
        if error_number(error) != UNKNOWN_VARIABLE:
            raise
        text, max_packet, *galera = _row(connection, ASK_WITHOUT_GALERA)
    return parse(str(text), int(max_packet), *galera)


def _row(connection: BaseDatabaseWrapper, sql: str) -> tuple[Any, ...]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return tuple(cursor.fetchone())


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
