"""A server that runs for as long as the tests do."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO

from . import client, keeper
from .address import Address
from .programs import identity
from .recipe import Recipe

#: Seconds until a server has to answer. A starter may have to fetch it first.
PATIENCE = 180.0
#: Bytes that a ram disk must have left to be used.
ROOM = 2 * 1024**3
TRIES = 3


class DidNotStart(Exception):
    """A server that ended, or never answered; the text has its last words."""


class PrivateServer:
    """A server under a keeper, which ends it when we are gone.

    It keeps its data in ``directory``; without one, on a ram disk if there is one.
    """

    def __init__(self, recipe: Recipe, directory: Path | None = None) -> None:
        self.recipe = recipe
        self._directory = directory
        began = time.monotonic()
        for attempt in range(1, TRIES + 1):
            self._begin()
            try:
                self._wait()
            except DidNotStart as error:
                self.close()
                # The port was free a moment ago.
                if attempt == TRIES or "in use" not in str(error):
                    raise
            else:
                break
        self.version = client.version(self.address)
        #: Seconds that it took to start.
        self.took = time.monotonic() - began

    def release(self) -> None:
        """Let the server go; ``close`` waits for its end."""
        if self._keeper.stdin is not None:
            self._keeper.stdin.close()

    def close(self) -> None:
        """End the server and remove its folder."""
        self.release()
        self._keeper.wait()
        self._log.close()

    def _begin(self) -> None:
        port = free_port()
        self._folder = _folder(self.recipe, self._directory or _ram_disk())
        self.address: Address = self.recipe.address(port)
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the server)
        plan = self.recipe.plan(self._folder, port)
        order = {
            "folder": str(self._folder),
            "identity": identity(self.recipe.account),
            "prepare": [[str(word) for word in command] for command in plan.prepare],
            "serve": [str(word) for word in plan.serve],
            "stop": [str(word) for word in plan.stop],
            "signal": int(plan.signal),
            "mortal": plan.mortal,
        }
        self._keeper = subprocess.Popen(
            [sys.executable, keeper.__file__, json.dumps(order)],
            stdin=subprocess.PIPE,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            # Ctrl-C in a terminal is for the tests: they may still need the server to clean up.
            start_new_session=True,
        )

    def _wait(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while not self._answers():
            if self._keeper.poll() is not None or time.monotonic() > deadline:
                raise DidNotStart(self._last_words())
            time.sleep(0.05)

    def _answers(self) -> bool:
        try:
            folder = client.data_folder(self.address)
        except Exception:
            return False
        # Another server may have been faster to take the port.
        return Path(folder).resolve().is_relative_to(self._folder.resolve())

    def _last_words(self) -> str:
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").split("\n")
        return " | ".join(line.strip() for line in lines[-12:] if line.strip()) or "no output"


def free_port() -> int:
    """Return a port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _ram_disk() -> Path | None:
    ram = Path("/dev/shm")
    return ram if ram.is_dir() and shutil.disk_usage(ram).free > ROOM else None


def _folder(recipe: Recipe, directory: Path | None) -> Path:
    """Make a folder for the account of the server."""
    prefix = f"steady-queue-{type(recipe).__name__.lower()}-"
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=directory))
    if recipe.account:
        shutil.chown(folder, recipe.account)
    elif os.geteuid() == 0:
        # A starter lets its server run, and write here, under an account that it chooses itself.
        folder.chmod(0o1777)
    return folder
