"""The position and the size of a walk through values, checked against the limits."""

from __future__ import annotations

from .errors import TaskArgumentError
from .limits import PayloadLimits
from .paths import render


class Walk:
    """The position in the values, for error messages, and the size of the text so far.

    The size is a lower bound: the walk adds the least size that a value can have in the text
    before it looks into the value, and so stops near the limit rather than at the end of the data.
    """

    __slots__ = (
        "_containers",
        "_deepest",
        "_limits",
        "_max_bytes",
        "_root",
        "_size",
        "_steps",
        "_whole",
    )

    def __init__(self, limits: PayloadLimits, root: str) -> None:
        self._limits = limits
        self._max_bytes = limits.max_bytes
        self._deepest = limits.max_depth
        self._size = 0
        #: What errors call the value at hand, and all of it together.
        self._root = self._whole = root
        #: The containers around the current value, and the step taken in each of them.
        self._containers: list[object] = []
        self._steps: list[object] = []

    def check_size(self, size: int) -> None:
        """Refuse a finished text of ``size`` bytes if that is over the limit."""
        if size > self._max_bytes:
            raise TaskArgumentError(self._too_large(f"{size:,}"))

    def _enter(self, container: object, length: int) -> None:
        if len(self._containers) >= self._deepest:
            raise self._too_deep(container)
        # Each item takes a character, and another that parts it from the next.
        if self._size + 2 * length > self._max_bytes:
            self._size += 2 * length
            raise self._exhausted()
        self._size += 1 + length
        self._containers.append(container)
        self._steps.append(None)

    def _leave(self) -> None:
        self._containers.pop()
        self._steps.pop()

    def _take(self, size: int) -> None:
        self._size += size
        if self._size > self._max_bytes:
            raise self._exhausted()

    def _refusal(self, reason: str) -> TaskArgumentError:
        return TaskArgumentError(f"{render(self._root, self._steps)} cannot be stored: {reason}")

    def _exhausted(self) -> TaskArgumentError:
        where = render(self._root, self._steps)
        return TaskArgumentError(
            f"{self._too_large(f'at least {self._size:,}')} It is passed at {where}."
        )

    def _too_large(self, size: str) -> str:
        return (
            f"{self._whole} cannot be stored: the JSON text takes {size} bytes, the limit is "
            f"{self._max_bytes:,}. Store the data elsewhere and pass its primary key or file name, "
            "or raise the limit."
        )

    def _too_deep(self, container: object) -> TaskArgumentError:
        seen: set[int] = set()
        for depth, outer in enumerate([*self._containers, container]):
            if id(outer) in seen:
                del self._steps[depth:]
                return self._refusal(
                    "it is a cycle, a container inside itself. Pass the parts of it that the task "
                    "needs."
                )
            seen.add(id(outer))
        return self._refusal(
            f"it is nested more than {self._limits.max_depth} levels deep. Pass a flatter "
            "structure, or raise the limit."
        )
