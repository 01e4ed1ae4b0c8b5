"""The registered processes, and what time it is."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from ..dialects import portable
from ..dialects.database import Database
from ..doctor.environment import host_time
from ..doctor.patient import marked
from ..listings.damage import read_each, suppress_damage
from ..listings.processes import MOST, ListedProcess, alive_threshold, as_tree
from ..models import Process


class Moment(NamedTuple):
    """The database's time, and that of this host before it was asked for and after."""

    present: datetime
    before: datetime
    after: datetime

    @property
    def minute(self) -> int:
        """Minutes since 1970, by the database's clock."""
        return int(self.present.timestamp() // 60)


def registered(
    using: str, running: Mapping[int, int], earlier: Moment | None
) -> tuple[Moment, list[ListedProcess]]:
    """Return the time and the processes of a database, by one query; without processes it is
    ``earlier``. ``running`` are their claimed jobs."""
    database = Database.of(using)
    rows: Any = Process.objects.using(using).order_by("pk")
    before = host_time()
    found = _read(rows.annotate(present=database.now()))
    if found:
        moment = Moment(portable.aware(found[0].present), before, host_time())
    else:
        moment = earlier or Moment(database.current_time(), before, host_time())
    threshold = alive_threshold(using)
    listed = [
        ListedProcess(row, moment.present, threshold, running.get(row.pk, 0)) for row in found
    ]
    return moment, as_tree(marked(listed))


def _read(rows: Any) -> list[Any]:
    with suppress_damage():
        return list(rows[:MOST])
    keys = list(rows.values_list("pk", flat=True)[:MOST])
    return [row for row in read_each(rows, keys).values() if row is not None]
