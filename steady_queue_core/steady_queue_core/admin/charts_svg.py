"""Charts as SVG elements, without scripts and styles of their own.

Colours come from classes, for which the style sheet of the overview has rules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from .chart_scales import Scale

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 320, 160, 46, 8, 10, 24
#: About how many labels the axis of time has, short ones and long ones.
SHORT, LABELS, LONG_LABELS = 5, 5, 3
#: More bars than these have no words of their own when the pointer rests on them.
MOST_TITLES = 60
GRID_LINE = '<path class="grid" d="M{} {}h{}"/><text x="{}" y="{}" text-anchor="end">{}</text>'


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
    #: What each step is called.
    steps: Sequence[str]
    series: Sequence[Series]
    #: How a value of each series is told.
    tell: Sequence[Callable[[float], str]]
    #: One axis for all series, or one on each side.
    scales: Sequence[Scale]
    summary: str = ""
    stacked: bool = False

    @property
    def rows(self) -> list[list[str]]:
        """The rows of the table: each step that has something to tell, the latest first."""
        found = []
        for position in reversed(range(len(self.steps))):
            values = [each.values[position] for each in self.series]
            if any(values):
                told = [
                    "-" if value is None else tell(value)
                    for value, tell in zip(values, self.tell, strict=True)
                ]
                found.append([self.steps[position], *told])
        return found

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to draw."""
        return not any(any(each.values) for each in self.series)

    @property
    def svg(self) -> SafeString:
        """The picture."""
        drawn = self._bars() if self.stacked else self._lines()
        return format_html(
            '<svg xmlns="http://www.w3.org/2000/svg" class="sq-chart" role="img" '
            'aria-labelledby="{0}-title" viewBox="0 0 {1} {2}" font-size="13">'
            '<title id="{0}-title">{3}</title>{4}{5}{6}</svg>',
            f"sq-{self.key}", WIDTH, HEIGHT, self.summary or self.title,
            self._grid(), self._times(), drawn,
        )  # fmt: skip

    # --- parts ---

    @property
    def _right(self) -> int:
        return LEFT if len(self.scales) > 1 else RIGHT

    @property
    def _width(self) -> float:
        return WIDTH - LEFT - self._right

    def _x(self, position: float) -> float:
        return LEFT + self._width * position / max(1, len(self.steps))

    def _y(self, value: float, scale: Scale) -> float:
        return HEIGHT - BOTTOM - scale.height(value, HEIGHT - TOP - BOTTOM)

    def _grid(self) -> SafeString:
        parts = []
        left, right = self.scales[0], self.scales[-1]
        for share in (0, 0.5, 1):
            y = self._y(left.most * share, left)
            told = self.tell[0](left.most * share)
            parts.append(
                format_html(
                    GRID_LINE,
                    LEFT,
                    f"{y:.0f}",
                    f"{self._width:.0f}",
                    LEFT - 5,
                    f"{y + 4:.0f}",
                    told,
                )
            )
            if len(self.scales) > 1:
                text = '<text x="{}" y="{}">{}</text>'
                told = self.tell[-1](right.most * share)
                parts.append(format_html(text, WIDTH - LEFT + 5, f"{y + 4:.0f}", told))
        return format_html_join("", "{}", ((part,) for part in parts))

    def _times(self) -> SafeString:
        labels = LABELS if max(map(len, self.steps), default=0) <= SHORT else LONG_LABELS
        every = max(1, round(len(self.steps) / labels))
        return format_html_join(
            "",
            '<text x="{}" y="{}" text-anchor="middle">{}</text>',
            (
                (f"{self._x(position + 0.5):.0f}", HEIGHT - 6, self.steps[position])
                for position in range(every // 2, len(self.steps), every)
            ),
        )

    def _bars(self) -> SafeString:
        bottoms = [0.0] * len(self.steps)
        paths = []
        for series in self.series:
            path = []
            for position, value in enumerate(series.values):
                if value:
                    path.append(self._bar(position, bottoms[position], value))
                    bottoms[position] += value
            paths.append((series.kind, "".join(path)))
        bars = format_html_join("", '<path class="{}" d="{}"/>', paths)
        return format_html("{}{}", bars, self._words())

    def _bar(self, position: int, bottom: float, value: float) -> str:
        width = self._width / max(1, len(self.steps))
        inner = width - 1 if width > 3 else width * 0.8
        lower = self._y(bottom, self.scales[0])
        height = max(lower - self._y(bottom + value, self.scales[0]), 1.0)
        x = self._x(position)
        return f"M{x:.1f} {lower:.1f}v{-height:.1f}h{inner:.1f}v{height:.1f}z"

    def _words(self) -> SafeString:
        """What is told where the pointer rests on a bar."""
        if len(self.steps) > MOST_TITLES:
            return SafeString()
        width, height = self._width / max(1, len(self.steps)), HEIGHT - TOP - BOTTOM
        told = []
        for position, step in enumerate(self.steps):
            if any(each.values[position] for each in self.series):
                numbers = [
                    f"{value:,.0f} {each.label}"
                    for each in self.series
                    if (value := each.values[position])
                ]
                words = f"{step}: {', '.join(numbers)}"
                told.append((f"{self._x(position):.1f}", TOP, f"{width:.1f}", height, words))
        rect = '<rect class="bar" x="{}" y="{}" width="{}" height="{}"><title>{}</title></rect>'
        return format_html_join("", rect, told)

    def _lines(self) -> SafeString:
        last = len(self.scales) - 1
        return format_html_join(
            "",
            '<path class="line {}" d="{}"/>',
            (
                (each.kind, self._line(each, self.scales[min(number, last)]))
                for number, each in enumerate(self.series)
            ),
        )

    def _line(self, series: Series, scale: Scale) -> str:
        path, pen = [], "M"
        for position, value in enumerate(series.values):
            if value is None:
                pen = "M"
                continue
            # A point alone is a line of no length, with round ends.
            path.append(f"{pen}{self._x(position + 0.5):.1f} {self._y(value, scale):.1f}")
            path.append("h0" if pen == "M" else "")
            pen = "L"
        return "".join(path)


def spark_svg(values: Sequence[int], label: str) -> SafeString:
    """Return a small line of numbers."""
    width, height = 120, 22
    scale = Scale(max(*values, 1))
    step = width / max(1, len(values) - 1)
    points = " ".join(
        f"{position * step:.0f},{height - 1 - scale.height(value, height - 3):.0f}"
        for position, value in enumerate(values)
    )
    return format_html(
        '<svg xmlns="http://www.w3.org/2000/svg" class="sq-spark" role="img" width="{}" '
        'height="{}" viewBox="0 0 {} {}"><title>{}</title><polyline points="{}"/></svg>',
        width, height, width, height, label, points,
    )  # fmt: skip
