"""Charts as SVG elements, without scripts and styles of their own.

Colours come from classes, for which the style sheet of the overview has rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count, groupby

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from .table_html import Table

#: Round durations from 1 ms on, in milliseconds.
SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000
DURATIONS = (
    *(1, 2, 5, 10, 20, 50, 100, 200, 500),
    *(each * SECOND for each in (1, 2, 4, 10, 20, 30)),
    *(each * MINUTE for each in (1, 2, 4, 10, 20, 30)),
    *(each * HOUR for each in (1, 2, 4, 12)),
    *(each * DAY for each in (1, 2, 4, 10, 30, 100, 400)),
)
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 320, 160, 46, 8, 10, 24
#: The width of a character of a label, and how far labels are from what they tell of.
CHARACTER, GAP = 8.5, 5
#: Where an axis has a label, as shares of its height.
SHARES = (0, 0.5, 1)
#: About how many labels the axis of time has, short ones and long ones.
SHORT, LABELS, LONG_LABELS = 5, 5, 3


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


def line_path(heights: Sequence[int | None]) -> str:
    """Return a line from the middle of each step to that of the next one; ``None`` is a gap.
    Heights are measured from the top."""
    path, before = [], None
    for step, height in enumerate(heights):
        if height is None:
            pass
        elif before is None:
            # A point alone is a line of no length, with round ends.
            path.append(f"M{step}.5 {height}h0")
        else:
            path.append(_change(height - before))
        before = height
    return "".join(path)


def _change(change: int) -> str:
    if not change:
        return "h1"
    return f"l1 {change}" if change > 0 else f"l1{change}"


def area_path(heights: Sequence[int], bottom: int) -> str:
    """Return the outline of bars that stand beside each other on the ``bottom``."""
    tops = (f"V{height}h{len([*steps])}" for height, steps in groupby(heights))
    return f"M0 {bottom}{''.join(tops)}V{bottom}z"


@dataclass(frozen=True)
class Series:
    """A number for each step, or none; the name of a class says how it is drawn."""

    label: str
    kind: str
    values: Sequence[float | None]


@dataclass(frozen=True)
class Chart:
    """What is drawn over time, and told in a table beside."""

    key: str
    title: str
    #: When each step begins, and how that is told.
    steps: Sequence[int]
    tell_time: Callable[[int], str]
    series: Sequence[Series]
    #: How a value of each series is told.
    tell: Sequence[Callable[[float], str]]
    #: One axis for all series, or one on each side.
    scales: Sequence[Scale]
    #: What the rows of the table are called, the earliest first, and the values of each series.
    told: Sequence[tuple[str, Sequence[float | None]]]
    summary: str = ""
    stacked: bool = False

    @property
    def table(self) -> Table:
        """The table: each time that has something to tell, the latest first."""
        heads = ["Time", *(each.label for each in self.series)]
        rows = [(time, *self._told(values)) for time, values in self.told if any(values)]
        return Table(f"sq-{self.key}", heads, rows[::-1], "sq-wide sq-tall")

    def _told(self, values: Sequence[float | None]) -> list[str]:
        return [
            "-" if value is None else tell(value)
            for value, tell in zip(values, self.tell, strict=True)
        ]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to draw."""
        return not any(any(each.values) for each in self.series)

    @property
    def svg(self) -> SafeString:
        """The picture."""
        return format_html(
            '<svg class="sq-chart" role="img" aria-labelledby="{0}-title" viewBox="0 0 {1} {2}" '
            'font-size="13"><title id="{0}-title">{3}</title>{4}{5}'
            '<g transform="translate({6})scale({7} 1)">{8}</g></svg>',
            f"sq-{self.key}", WIDTH, HEIGHT, self.summary or self.title, self._grid(),
            self._times(), self._left, f"{self._step:.3f}",
            self._areas() if self.stacked else self._lines(),
        )  # fmt: skip

    # --- parts ---

    @property
    def _left(self) -> int:
        return _room(self._labels(0))

    @property
    def _right(self) -> int:
        return _room(self._labels(-1)) if len(self.scales) > 1 else RIGHT

    @property
    def _width(self) -> int:
        return WIDTH - self._left - self._right

    def _labels(self, side: int) -> list[str]:
        """Return what an axis says at its bottom, its middle and its top."""
        return [self.tell[side](self.scales[side].most * share) for share in SHARES]

    @property
    def _step(self) -> float:
        return self._width / max(1, len(self.steps))

    def _y(self, value: float, scale: Scale) -> int:
        return round(HEIGHT - BOTTOM - scale.height(value, HEIGHT - TOP - BOTTOM))

    def _grid(self) -> SafeString:
        scale, left, right = self.scales[0], self._left, WIDTH - self._right
        heights = [self._y(scale.most * share, scale) for share in SHARES]
        labels = [
            ("y", left - GAP, height + 4, label)
            for label, height in zip(self._labels(0), heights, strict=True)
        ]
        if len(self.scales) > 1:
            labels += [
                ("z", right + GAP, height + 4, label)
                for label, height in zip(self._labels(-1), heights, strict=True)
            ]
        return format_html(
            '<path class="grid" d="{}"/>{}',
            "".join(f"M{left} {height}h{self._width}" for height in heights),
            format_html_join("", '<text class="{}" x="{}" y="{}">{}</text>', labels),
        )

    def _times(self) -> SafeString:
        labels = LABELS if len(self.tell_time(self.steps[0])) <= SHORT else LONG_LABELS
        every, left = max(1, round(len(self.steps) / labels)), self._left
        return format_html_join(
            "",
            '<text class="x" x="{}" y="{}">{}</text>',
            (
                (
                    round(left + (position + 0.5) * self._step),
                    HEIGHT - 6,
                    self.tell_time(step),
                )
                for position, step in enumerate(self.steps)
                if position % every == every // 2
            ),
        )

    def _areas(self) -> SafeString:
        bottom, [scale] = HEIGHT - BOTTOM, self.scales
        tops, areas = [bottom] * len(self.steps), []
        for series in self.series:
            # What is there is seen, however little it is.
            heights = [bottom - self._y(each, scale) or 1 if each else 0 for each in series.values]
            if any(heights):
                tops = [top - height for top, height in zip(tops, heights, strict=True)]
                areas.append((series.kind, area_path(tops, bottom)))
        # The one on top reaches down to the bottom, behind the others.
        return format_html_join("", '<path class="{}" d="{}"/>', areas[::-1])

    def _lines(self) -> SafeString:
        last = len(self.scales) - 1
        return format_html_join(
            "",
            '<path class="line {}" d="{}"/>',
            (
                (each.kind, line_path(self._heights(each, self.scales[min(number, last)])))
                for number, each in enumerate(self.series)
            ),
        )

    def _heights(self, series: Series, scale: Scale) -> list[int | None]:
        return [None if each is None else self._y(each, scale) for each in series.values]


def _room(labels: Sequence[str]) -> int:
    """Return the width of an axis with these labels."""
    return max(LEFT, round(CHARACTER * max(map(len, labels))) + GAP)


def spark_svg(values: Sequence[int], label: str) -> SafeString:
    """Return a small line of numbers."""
    height, scale = 16, Scale(max(*values, 1))
    heights = [height - 1 - round(scale.height(each, height - 2)) for each in values]
    return format_html(
        '<svg class="sq-spark" role="img" viewBox="0 0 {} {}" preserveAspectRatio="none">'
        '<title>{}</title><path d="{}"/></svg>',
        len(values), height, label, line_path(heights),
    )  # fmt: skip
