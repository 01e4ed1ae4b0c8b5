"""Columns of rows that were damaged by manual edits."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.admin import display
from django.core.exceptions import ObjectDoesNotExist

from ..listings.damage import DAMAGED, ERRORS


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
