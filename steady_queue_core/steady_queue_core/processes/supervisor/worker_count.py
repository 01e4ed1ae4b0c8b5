"""TTIN and TTOU: one worker process more, or fewer, until the supervisor starts anew."""

from __future__ import annotations

from dataclasses import replace

from ..worker.worker import Worker
from .managed_process import ProcessSpec


class WorkerCount:
    """Changes how many processes the first kind of worker has."""

    def __init__(self, specs: list[ProcessSpec]) -> None:
        """``specs``: of all processes; changed in place."""
        self._specs = specs

    def add(self) -> ProcessSpec | None:
        """Return the spec of one process more; ``None``: there are no workers."""
        present = self._present
        if not present:
            return None
        spec = replace(present[0])
        self._specs.append(spec)
        return spec

    def remove(self) -> ProcessSpec | None:
        """Return the spec of the process that is too many; ``None``: there is but one."""
        present = self._present
        if len(present) < 2:
            return None
        # By identity: they are all equal.
        self._specs[:] = [spec for spec in self._specs if spec is not present[-1]]
        return present[-1]

    @property
    def _present(self) -> list[ProcessSpec]:
        workers = [spec for spec in self._specs if spec.kind == Worker.kind]
        return [spec for spec in workers if spec.description == workers[0].description]
