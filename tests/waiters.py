"""Who waits for a lock in a database, of whose server others may have the rest."""

from __future__ import annotations

import re
from typing import Any

ON_POSTGRES = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock'"""


def waiters(connection: Any) -> int:
    """Return how many transactions wait for a lock in the database of a connection."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(ON_POSTGRES)
            return int(cursor.fetchone()[0])
        # The tables of locks are a copy, which is not renewed while somebody reads it ten times a
        # second; MySQL's performance schema, which would do, is not there on MariaDB.
        cursor.execute("SHOW ENGINE INNODB STATUS")
        [(_, _, status)] = cursor.fetchall()
    transactions = status.partition("\nTRANSACTIONS\n")[2]
    name = re.escape(connection.settings_dict["NAME"])
    return len(re.findall(rf" table `{name}`\.`\w+` trx id \d+ lock.mode .* waiting", transactions))
