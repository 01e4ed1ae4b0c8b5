"""The floor: the cost of this project's tables and statements without a framework.

Two processes, each a loop over a bare connection of the driver: claim a batch, look each task up in
a dict, decode its arguments, call it, encode what it returned, store the batch's outcomes together
with the next claim. The same rows are written and fenced as by this project. There are no threads,
signals, task objects, retries, schedules, heartbeats or error handling, and no Django at work in
the workers: nothing with those can reach it.
"""

from __future__ import annotations

from benchmarks.adapters.floor.adapter import Floor

__all__ = ["Floor"]
