"""Text that columns contain, in upper or lower case."""

from __future__ import annotations

from django.db.models import Q
from django.db.models.functions import Lower
from django.db.models.lookups import Contains


def contains(text: str, *columns: str) -> Q:
    """Return the condition that one of the columns contains ``text``, ignoring case: of letters
    beyond ASCII, as far as the database knows their case."""
    found = Q()
    for column in columns:
        found |= Q(**{f"{column}__icontains": text})
        # MySQL compares in the collation of the column, which is exact.
        found |= Q(Contains(Lower(column), text.lower()))
    return found
