"""haproxy, with a file of the examples as it is."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.servers.programs import NotFound


class Proxy:
    """A proxy whose addresses stand in its environment."""

    def __init__(self, configuration: Path, addresses: Mapping[str, str], log: Path) -> None:
        program = shutil.which("haproxy", path=f"{os.environ['PATH']}:/usr/sbin")
        if program is None:
            raise NotFound("no haproxy: install it")
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [program, "-db", "-f", configuration],
                env={**os.environ, **addresses},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
