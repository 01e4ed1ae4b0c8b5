"""The weights of the keys of fair queues.

::

    from steady_queue_core import shares

    shares.set_weight("mail", "tenant-1", 5)
    shares.weight_of("mail", "tenant-1")  # 5.0
    shares.reset_weight("mail", "tenant-1")
"""

from __future__ import annotations

from uuid import UUID

from django.db.models import Model, QuerySet

from .compat import InvalidTask
from .configuration.errors import describe
from .configuration.queues import name_objection
from .configured_backends import queue_databases
from .dialects import fair_queues_in
from .dialects.database import Database
from .features.fair.queues import LARGEST_WEIGHT, LEAST_WEIGHT, OPTION, is_weight
from .features.keys import shortened, text_of_value
from .models import Share

#: A key, as ``using(fair_key=...)`` takes it; ``""`` or ``None``: the jobs without one.
ShareKey = str | int | UUID | Model | None


def set_weight(queue: str, key: ShareKey, weight: float, *, using: str = "") -> None:
    """Give a key of a fair queue a weight, for jobs that become ready from then on.

    ``using`` is the alias of a database, by default that of the default backend. Raises
    ``ValueError`` or ``TypeError`` for invalid values, also if the queue is not fair.
    """
    using = using or _default()
    row = Share(queue_name=fair_queue(queue, using), key=_text(key), weight=checked_weight(weight))
    database = Database.of(using)
    database.dialect.upsert(database.connection, [row], ["queue_name", "key"], ["weight"])


def weight_of(queue: str, key: ShareKey, *, using: str = "") -> float | None:
    """Return the weight that jobs of a key get when they become ready: its own, or that of the
    queue; ``None``: the queue is not fair."""
    using = using or _default()
    queues = fair_queues_in(using)
    default = None if queues is None else queues.weight_of(queue)
    if default is None:
        return None
    own = _rows(queue, using).filter(key=_text(key)).values_list("weight", flat=True).first()
    # SQLite lets a row hold something other than a number.
    return float(own) if is_weight(own) else default


def reset_weight(queue: str, key: ShareKey, *, using: str = "") -> bool:
    """Give a key the default weight of its queue again; return whether it had one of its own."""
    return bool(_rows(queue, using or _default()).filter(key=_text(key)).delete()[0])


def weights_of(queue: str, *, using: str = "") -> dict[str, float]:
    """Return the keys of a queue that have weights of their own, with these."""
    rows = _rows(queue, using or _default()).order_by("key").values_list("key", "weight")
    return {key: float(weight) for key, weight in rows if is_weight(weight)}


def fair_queue(queue: object, using: str) -> str:
    """Return the name of a queue in which keys may have weights. Raises ``TypeError`` or
    ``ValueError``."""
    if not isinstance(queue, str):
        raise TypeError(f"The queue must be a name, not {describe(queue)}.")
    if reason := name_objection(queue):
        raise ValueError(f"The queue {queue!r} is not valid: it {reason}.")
    queues = fair_queues_in(using)
    if queues is None or queues.weight_of(queue) is None:
        raise ValueError(
            f"The queue {queue!r} of the database {using!r} is not fair: its keys have no weights. "
            f"Check the spelling, or add it to OPTIONS[{OPTION!r}] of a backend in TASKS."
        )
    return queue


def checked_weight(weight: object) -> float:
    """Return a weight that a key may have. Raises ``TypeError`` or ``ValueError``."""
    if is_weight(weight):
        return float(weight)
    expected = f"The weight must be a number from {LEAST_WEIGHT} to {LARGEST_WEIGHT}"
    kind = ValueError if type(weight) in (int, float) else TypeError
    raise kind(f"{expected}, not {describe(weight)}.")


def _text(key: ShareKey) -> str:
    """Return a key as jobs store it. Raises ``TypeError`` or ``ValueError``."""
    if isinstance(key, bool) or not isinstance(key, str | int | UUID | Model | None):
        raise TypeError(
            "The key must be a string, a number, a UUID, a model instance, or None for jobs "
            f"without a key, not {describe(key)}."
        )
    if key is None:
        return ""
    try:
        return shortened(text_of_value(key, "The key", "jobs without a key"))
    except InvalidTask as error:
        raise ValueError(str(error)) from None


def _rows(queue: str, using: str) -> QuerySet[Share]:
    return Share.objects.using(using).filter(queue_name=queue)


def _default() -> str:
    return queue_databases()[0]
