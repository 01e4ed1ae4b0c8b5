"""A private MariaDB, as installed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .address import Address
from .programs import FOLDERS, NotFound, account_for, executables, version_of
from .recipe import Plan

SERVERS = (*FOLDERS, "/opt/homebrew/opt/mariadb*/bin", "/usr/local/opt/mariadb*/bin")


@dataclass(frozen=True)
class MariaDB:
    """A server, and the program that makes its data folder."""

    server: Path
    installer: Path
    account: str | None

    @property
    def origin(self) -> str:
        return f"started from {self.server}"

    def plan(self, folder: Path, port: int) -> Plan:
        data = f"--datadir={folder / 'data'}"
        return Plan(
            prepare=[
                [
                    *(self.installer, "--no-defaults", data, "--skip-test-db"),
                    *("--auth-root-authentication-method=normal", "--skip-name-resolve"),
                ]
            ],
            serve=[
                *(self.server, "--no-defaults", data, f"--port={port}"),
                *("--bind-address=127.0.0.1", "--skip-name-resolve", "--max-connections=200"),
                # Relative to the data folder: the whole path may be too long for a socket.
                *("--socket=server.sock", f"--pid-file={folder / 'pid'}"),
                *("--character-set-server=utf8mb4", "--collation-server=utf8mb4_general_ci"),
                *("--innodb-flush-log-at-trx-commit=0", "--skip-innodb-doublewrite"),
            ],
        )

    def address(self, port: int) -> Address:
        return Address("mysql", "root", "", "127.0.0.1", port, "steady_queue")


def find() -> MariaDB:
    """Return the MariaDB that is installed."""
    servers = executables("mariadbd", SERVERS)
    if not servers:
        raise NotFound("no mariadbd, neither on PATH nor in the usual places")
    server = servers[0]
    beside = [str(server.parent), str(server.parent.parent / "bin"), "/usr/bin"]
    installers = executables("mariadb-install-db", beside)
    if not installers:
        raise NotFound(f"{server} is there, but no mariadb-install-db")
    account = account_for("mysql")
    version_of(server, account)
    return MariaDB(server, installers[0], account)
