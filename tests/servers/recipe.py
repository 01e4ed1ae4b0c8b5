"""How a private server is started."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from .address import Address

Command = Sequence[str | Path]


@dataclass(frozen=True)
class Plan:
    """The commands that bring up one server, and down again."""

    #: Runs as long as the server does; or, where there is ``stop``, until the server answers.
    serve: Command
    #: Make the data folder. The others are tried only if the first one fails.
    prepare: Sequence[Command] = field(default=())
    #: Ends a server that ``serve`` has left in the background.
    stop: Command = ()
    #: Ends the program ``serve``. Nobody will miss its data.
    signal: int = signal.SIGKILL
    #: Whether ``serve`` may end before its time, and be started anew in its folder.
    mortal: bool = False


class Recipe(Protocol):
    """A server that can be started here."""

    @property
    def account(self) -> str | None:
        """The account that it runs under; ``None``: our own."""

    @property
    def origin(self) -> str:
        """Where its programs are from."""

    def plan(self, folder: Path, port: int) -> Plan:
        """Return the commands for a server that keeps everything it writes in ``folder``."""

    def address(self, port: int) -> Address:
        """Return how its administrator logs in."""
