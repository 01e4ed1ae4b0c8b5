"""A network of machines on one: each node in a namespace of its own, all on a bridge."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence

#: Seconds for one command.
PATIENCE = 10
#: Kept apart from the networks of other runs by the third number of the address.
ADDRESS = "10.77.{subnet}.{number}"
PROXY = 254


class NotPermitted(Exception):
    """This machine lets us make no network; the text says why."""


class Namespaces:
    """Nodes 1 to ``size`` at ``10.77.SUBNET.NUMBER``, reached from outside, too.

    Needs root and ``ip`` of iproute2. Names of interfaces have 15 characters at most.
    """

    def __init__(self, label: str, subnet: int, size: int = 3) -> None:
        self._bridge = f"sq-{label}"
        self._subnet = subnet
        self._numbers = range(1, size + 1)

    def address(self, number: int) -> str:
        return ADDRESS.format(subnet=self._subnet, number=number)

    def inside(self, number: int) -> Sequence[str]:
        """Return what comes before a command that is to run on node ``number``."""
        return ("ip", "netns", "exec", self._name(number))

    def make(self) -> None:
        if shutil.which("ip") is None:
            raise NotPermitted("there is no ip: install iproute2")
        self.remove()
        _ip("link", "add", self._bridge, "type", "bridge")
        _ip("addr", "add", f"{self.address(PROXY)}/24", "dev", self._bridge)
        _ip("link", "set", self._bridge, "up")
        for number in self._numbers:
            self._add(number)

    def remove(self) -> None:
        """Remove what is there of it, also of a run that was killed."""
        for number in self._numbers:
            _try_ip("link", "del", self._name(number))
            _try_ip("netns", "del", self._name(number))
        _try_ip("link", "del", self._bridge)

    def cut_off(self, number: int) -> None:
        """Unplug a node: whatever is sent to it or by it is lost without a word."""
        _ip("link", "set", self._name(number), "nomaster")

    def reconnect(self, number: int) -> None:
        _ip("link", "set", self._name(number), "master", self._bridge)

    def processes(self, number: int) -> list[int]:
        """Return the processes that run on a node."""
        return [int(pid) for pid in _ip("netns", "pids", self._name(number)).split()]

    def _name(self, number: int) -> str:
        return f"{self._bridge}{number}"

    def _add(self, number: int) -> None:
        name = self._name(number)
        _ip("netns", "add", name)
        _ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
        _ip("link", "set", name, "master", self._bridge, "up")
        _ip("-n", name, "addr", "add", f"{self.address(number)}/24", "dev", "eth0")
        _ip("-n", name, "link", "set", "eth0", "up")
        _ip("-n", name, "link", "set", "lo", "up")


def _ip(*words: str) -> str:
    done = subprocess.run(
        ["ip", *words], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    if done.returncode:
        raise NotPermitted(f"ip {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def _try_ip(*words: str) -> None:
    subprocess.run(["ip", *words], capture_output=True, timeout=PATIENCE, check=False)
