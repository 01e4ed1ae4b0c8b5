"""The listening socket of the probe, which outlives the processes that answer there."""

from __future__ import annotations

import os
import socket

from ...configuration import ResolvedOptions
from ...errors import SteadyQueueError
from ...logging import about, get_logger
from .handover import Handover

logger = get_logger("steady_queue.supervisor")


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


def listen_as(options: ResolvedOptions, former: Handover | None, *, is_wanted: bool) -> int | None:
    """Return the descriptor of a socket that listens as ``options`` say; ``None`` if no probe
    ``is_wanted``, or if it cannot after the ``former`` supervisor, whose children are at work.
    Raises ``ProbeSocketError``."""
    socket_of_former = former.probe_socket if former is not None else None
    if options.probe_port is None or not is_wanted:
        if socket_of_former is not None:
            os.close(socket_of_former)
        return None
    try:
        return listen(options.probe_address, options.probe_port, socket_of_former)
    except ProbeSocketError as error:
        if former is None:
            raise
        logger.error("%s", error, extra=about("supervisor.without_probe"))
        return None


def _is_at(descriptor: int, address: str, port: int) -> bool:
    with socket.socket(fileno=os.dup(descriptor)) as listening:
        found = listening.getsockname()
    return bool(found[:2] == (address, port))
