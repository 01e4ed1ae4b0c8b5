"""Workers of several competitors empty their queues in turns, a slice of time each.

While one has its turn, the processes of the others are stopped. So each has the machine for itself,
and all have the same one: a load that comes and goes meets them alike.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack

from benchmarks import task_probe
from benchmarks.processes import Tree
from benchmarks.sandbox import Failure, Sandbox

SLICE = 0.025
"""Seconds of a turn."""
PAUSE = 0.005
"""Seconds between two looks whether all have begun."""
LIMIT = 60.0
"""Seconds until all have to be done."""


class Player:
    """A competitor with a full queue, and its workers."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.jobs = sandbox.fill("noop")
        self.tree: Tree | None = None

    def begin(self) -> Tree:
        """Start the workers."""
        self.tree = self.sandbox.workers()
        return self.tree

    def effects(self) -> task_probe.Effects:
        return task_probe.effects(self.sandbox.effects)

    def has_begun(self) -> bool:
        """Say whether every worker process has run a job."""
        return self.effects().processes >= self.sandbox.options.processes or self.is_done()

    def is_done(self) -> bool:
        return self.effects().jobs >= self.jobs

    def pause(self) -> None:
        if self.tree:
            self.tree.pause()

    def resume(self) -> None:
        if self.tree:
            self.tree.resume()


def cpu_us(sandboxes: Sequence[Sandbox]) -> list[float]:
    """Return the CPU time of each one's workers, in microseconds for each job."""
    players = [Player(sandbox) for sandbox in sandboxes]
    deadline = time.monotonic() + LIMIT
    with ExitStack() as stack:
        for player in players:
            stack.enter_context(player.begin())
            # Before the end of its processes, which would not hear of it.
            stack.callback(player.resume)
        _wait_for_all(players, deadline)
        while playing := [player for player in players if not player.is_done()]:
            for player in playing:
                _check_time(deadline)
                player.resume()
                time.sleep(SLICE)
                player.pause()
    return [player.effects().cpu_us for player in players]


def _wait_for_all(players: Sequence[Player], deadline: float) -> None:
    """Stop each player that has begun, until all have."""
    waiting = list(players)
    while waiting:
        _check_time(deadline)
        for player in list(waiting):
            if player.has_begun():
                player.pause()
                waiting.remove(player)
        time.sleep(PAUSE)


def _check_time(deadline: float) -> None:
    if time.monotonic() > deadline:
        raise Failure(f"workers have not emptied their queues in {LIMIT:g} s")
