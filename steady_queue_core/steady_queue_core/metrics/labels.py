"""The labels of samples, whose values come from rows and may be anything."""

from __future__ import annotations

from typing import Any

from prometheus_client import Metric

from ..printable import printable_lines


def make_printable(family: Metric) -> Metric:
    """Replace what is unsafe to print in the labels of a family by escapes. The format itself has
    one for the end of a line.

    Names that are the same then become one series, with the sum: Prometheus refuses all of an
    answer that has a series twice.
    """
    found: dict[tuple[str, ...], Any] = {}
    for sample in family.samples:
        labels = {name: printable_lines(text) for name, text in sample.labels.items()}
        key = sample.name, *labels.values()
        value = sample.value + (found[key].value if key in found else 0)
        found[key] = sample._replace(labels=labels, value=value)
    family.samples = list(found.values())
    return family
