"""The servers that there are: found first, started when somebody needs them."""

from __future__ import annotations

import os
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

from . import client
from .address import Address, BadAddress
from .kinds import KINDS
from .private import DidNotStart, PrivateServer
from .programs import NotFound
from .recipe import Recipe

#: Aliases, separated by commas: to go on without one of these is an error.
REQUIRE = "STEADY_QUEUE_TEST_REQUIRE"


class Unusable(Exception):
    """What the environment asks for cannot be had."""


class Fleet:
    """A server of each kind, or the reason why there is none, by alias."""

    def __init__(self) -> None:
        #: Addresses of servers that answer.
        self.running: dict[str, Address] = {}
        self.versions: dict[str, str] = {}
        self.missing: dict[str, str] = {}
        self._given: dict[str, Address] = {}
        self._recipes: dict[str, Recipe] = {}
        self._private: dict[str, PrivateServer] = {}
        #: Held while a server starts: who else wants it waits.
        self._starting = {alias: Lock() for alias in KINDS}
        self._is_closed = False
        for alias in KINDS:
            self._find(alias)
        self._insist()

    def origin(self, alias: str) -> str:
        """Say where a server is from."""
        if alias in self._given:
            return f"named by {KINDS[alias].variable}"
        return self._recipes[alias].origin

    def seconds(self, alias: str) -> float:
        """Return how long a server took to start; 0: it had been running before."""
        return self._private[alias].took if alias in self._private else 0.0

    def start(self, aliases: Collection[str]) -> None:
        """Start private servers, side by side and each once, and name them in the environment."""
        with ThreadPoolExecutor(max_workers=len(KINDS)) as threads:
            list(threads.map(self._start_once, aliases))
        self._insist()

    def close(self) -> None:
        """End what was started, and what others are starting."""
        self._is_closed = True
        for alias, starting in self._starting.items():
            with starting:
                if alias in self._private:
                    self._private[alias].release()
        for alias, server in self._private.items():
            server.close()
            os.environ.pop(KINDS[alias].variable, None)
        self._private.clear()

    def _find(self, alias: str) -> None:
        kind = KINDS[alias]
        try:
            if address := kind.given():
                self._given[alias] = address
            else:
                self._recipes[alias] = kind.find()
        except BadAddress as error:
            raise Unusable(f"{kind.variable}: {error}") from None
        except NotFound as error:
            self.missing[alias] = str(error)

    def _start_once(self, alias: str) -> None:
        with self._starting[alias]:
            if self._is_closed:
                raise Unusable("The servers have ended.")
            if alias not in self.running and alias not in self.missing:
                self._start(alias)

    def _start(self, alias: str) -> None:
        if address := self._given.get(alias):
            try:
                self.versions[alias] = client.version(address)
            except Exception as error:
                raise Unusable(f"{KINDS[alias].variable}: {error}") from None
            self.running[alias] = address
        elif alias in self._recipes:
            try:
                server = PrivateServer(self._recipes[alias])
            except DidNotStart as error:
                self.missing[alias] = f"{self.origin(alias)}, it did not come up: {error}"
                return
            self._private[alias] = server
            self.versions[alias] = server.version
            self.running[alias] = server.address
            os.environ[KINDS[alias].variable] = str(server.address)

    def _insist(self) -> None:
        """Raise for a server that is required and missing."""
        required = [name.strip() for name in os.environ.get(REQUIRE, "").split(",") if name.strip()]
        if unknown := [name for name in required if name not in KINDS]:
            raise Unusable(f"{REQUIRE}: {', '.join(unknown)} is none of {', '.join(KINDS)}")
        gaps = [f"{KINDS[name].title}: {self.missing[name]}" for name in required
                if name in self.missing]  # fmt: skip
        if gaps:
            raise Unusable(f"{REQUIRE} names what is missing here. {' '.join(gaps)}")
