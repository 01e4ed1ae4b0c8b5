"""The registered processes, and what time it is."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from ..dialects import portable
from ..dialects.database import Database
from ..doctor.environment import host_time
from ..doctor.patient import marked
from ..listings.processes import ListedProcess, listed, read_processes


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
    before = host_time()
    rows = read_processes(using)
    after = host_time()
    if rows:
        moment = Moment(portable.aware(rows[0].present), before, after)
    else:
        moment = earlier or Moment(Database.of(using).current_time(), before, host_time())
    return moment, marked(listed(using, rows, running))
