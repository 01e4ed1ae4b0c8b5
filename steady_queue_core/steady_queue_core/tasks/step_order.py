"""The names of steps, and their order, which is the same in each attempt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..arguments import DeserializationError
from ..dialects import StepRecord
from ..errors import StepOrderError
from ..printable import UNSAFE

LONGEST_NAME = 255
MEND = (
    "Let the jobs that have begun run to their end with the code that began them; later, put new "
    "steps after all others, and let nothing but arguments and earlier steps decide which ones "
    "follow. Once the former order is back, the job can be retried: it takes no step twice."
)


def checked_name(name: Any) -> str:
    """Return the name of a step. Raises ``TypeError`` and ``ValueError``."""
    if not isinstance(name, str):
        raise TypeError(f"The name of a step must be a string, not {type(name).__name__}.")
    if not name:
        raise ValueError("The name of a step must not be empty.")
    if len(name) > LONGEST_NAME:
        raise ValueError(
            f"The name of a step has {len(name)} characters, more than {LONGEST_NAME}: "
            f"{name[:30]!r}..."
        )
    if UNSAFE.search(name):
        raise ValueError(f"The name of a step holds a control character: {name!r}")
    return name


def taken_twice(name: str) -> ValueError:
    """Return the error of a name that is used once more in an attempt."""
    return ValueError(
        f"This attempt has taken the step {name!r} already. Each step needs a name of its own: in "
        f'a loop, number them, as in f"{name} {{number}}".'
    )


class StepOrder:
    """What the attempts before have stored of a job's steps."""

    def __init__(self, stored: Sequence[StepRecord]) -> None:
        for step in stored:
            if not (isinstance(step.name, str) and isinstance(step.position, int)):
                raise DeserializationError(
                    f"A stored step of job {step.job_id} is damaged: its name is {step.name!r}, "
                    f"and its position {step.position!r}."
                )
        self._named = {step.name: step for step in stored}
        self._placed = {step.position: step for step in stored}

    def find(self, name: str, position: int, *, is_sleep: bool) -> StepRecord | None:
        """Return the stored step that this one is, if it is stored. Raises ``StepOrderError``."""
        step, other = self._named.get(name), self._placed.get(position)
        if step is None and other is None:
            return None
        if step is None or step.position != position or bool(step.is_sleep) != is_sleep:
            raise StepOrderError(self._changed(name, position, is_sleep, step, other))
        return step

    def _changed(
        self,
        name: str,
        position: int,
        is_sleep: bool,
        step: StepRecord | None,
        other: StepRecord | None,
    ) -> str:
        called = f"This attempt has the {_what(name, is_sleep)} as number {position + 1}"
        if step is not None and step.position == position:
            was = f"it was a {_kind(step.is_sleep)} in an attempt before"
        elif other is None:
            was = "where no attempt before has stored one"
        else:
            was = f"where an attempt before has stored the {_what(other.name, other.is_sleep)}"
        if step is not None and step.position != position:
            was += f", and {name!r} as number {step.position + 1}"
        return f"{called}, {was}. {MEND}"


def _kind(is_sleep: Any) -> str:
    return "sleep" if is_sleep else "step"


def _what(name: str, is_sleep: Any) -> str:
    return f"{_kind(is_sleep)} {name!r}"
