"""Columns of lists, whose rows may have been damaged by manual edits."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import wraps
from operator import attrgetter
from typing import Any

from django.contrib.admin import display
from django.core.exceptions import ObjectDoesNotExist

from ..listings.damage import DAMAGED, ERRORS
from . import texts


def column(description: str) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Turn a function of a row into a column of a list. A missing value is left blank, and a
    damaged one is marked as such."""

    def decorate(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        @display(description=description)
        @wraps(function)
        def shown(row: Any) -> Any:
            try:
                return function(row)
            except ObjectDoesNotExist:
                return ""
            except ERRORS:
                return DAMAGED

        return shown

    return decorate


def attribute(
    description: str, path: str, show: Callable[[Any], Any] = texts.named
) -> Callable[[Any], Any]:
    """Return the column of an attribute, with dots between the steps to it. The style sheet knows
    it by its description."""
    get = attrgetter(path)

    def shown(row: Any) -> Any:
        return show(get(row))

    shown.__name__ = description.replace(" ", "_")
    return column(description)(shown)


def _since(instant: datetime, present: datetime) -> str:
    return texts.dated(texts.between(instant, present), instant)


def since(
    description: str, path: str, show: Callable[[Any, Any], str] = _since
) -> Callable[[Any], Any]:
    """Return the column of the time since an instant, which it has as its title, up to the
    ``present`` of the row."""
    get = attrgetter(path)

    @column(description)
    def time_since(row: Any) -> str:
        return show(get(row), row.present)

    return time_since
