"""A server of a test's own, for what is the whole server's: its settings, its users."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from .kinds import KINDS
from .private import PrivateServer
from .programs import NotFound


@contextmanager
def own_server(alias: str) -> Iterator[PrivateServer]:
    """Start a server for a while; skip the test where there is only an address of one."""
    try:
        recipe = KINDS[alias].find()
    except NotFound as error:
        pytest.skip(str(error))
    with closing(PrivateServer(recipe)) as server:
        yield server
