"""The listening socket of the probe, which outlives the processes that answer there."""

from __future__ import annotations

import os
import socket

from ...errors import SteadyQueueError


class ProbeSocketError(SteadyQueueError):
    """The address of the probe cannot be used."""


def listen(address: str, port: int, former: int | None = None) -> int:
    """Return the descriptor of a socket that listens there: the ``former`` one if that does so,
    which is closed otherwise. Raises ``ProbeSocketError``."""
    if former is not None:
        if _is_at(former, address, port):
            return former
        os.close(former)
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        return socket.create_server((address, port), family=family, backlog=64).detach()
    except OSError as error:
        raise ProbeSocketError(
            f"The probe cannot listen at {address}, port {port}: {error.strerror or error}. Choose "
            "another port with --probe-port or STEADY_QUEUE['probe_port'], or an address of this "
            "host with --probe-address or 'probe_address'."
        ) from error


def _is_at(descriptor: int, address: str, port: int) -> bool:
    with socket.socket(fileno=os.dup(descriptor)) as listening:
        found = listening.getsockname()
    return bool(found[:2] == (address, port))
