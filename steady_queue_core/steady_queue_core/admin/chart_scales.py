"""The axes of charts: round numbers that their values fit under, and where these are drawn."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count

#: Round durations from 1 ms on, in milliseconds.
SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000
DURATIONS = (
    *(1, 2, 5, 10, 20, 50, 100, 200, 500),
    *(each * SECOND for each in (1, 2, 4, 10, 20, 30)),
    *(each * MINUTE for each in (1, 2, 4, 10, 20, 30)),
    *(each * HOUR for each in (1, 2, 4, 12)),
    *(each * DAY for each in (1, 2, 4, 10, 30, 100, 400)),
)


@dataclass(frozen=True)
class Scale:
    """A linear axis from zero to ``most``."""

    most: float

    @classmethod
    def of_numbers(cls, values: Iterable[float | None]) -> Scale:
        """Return the axis for numbers of things."""
        largest = max((each for each in values if each is not None), default=0)
        for power in count():
            # Half of each is a whole number, and told as well.
            for digit in (2, 3, 4, 6, 8, 10) if power else (2, 4, 6, 10):
                if digit * 10**power >= largest:
                    return cls(digit * 10**power)
        raise AssertionError  # There is no largest power of ten.

    @classmethod
    def of_durations(cls, values: Iterable[float | None]) -> Scale:
        """Return the axis for milliseconds."""
        largest = max((each for each in values if each is not None), default=0)
        return cls(next((each for each in DURATIONS if each >= largest), largest))

    def height(self, value: float, pixels: float) -> float:
        """Return how far above zero a value is drawn."""
        return pixels * min(value, self.most) / self.most
