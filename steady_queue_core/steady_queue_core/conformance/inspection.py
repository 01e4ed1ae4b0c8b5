"""What the tables hold: read past the ORM, for every case looks at all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from ..dialects.portable.models import model

if TYPE_CHECKING:
    from django.test import TransactionTestCase as _Base
else:
    _Base = object

#: The tables in which a job has a row: exactly one of them, which is its state.
STATES = ("Waiting", "Ready", "Scheduled", "Blocked", "Claimed", "Failed")
TABLES = (
    "Job", *(f"{state}Execution" for state in STATES), "Semaphore", "Permit", "Retention",
    "Checkpoint", "Step", "UniqueKey", "JobBatch", "BatchMember", "Dependency", "Turn", "Share",
    "Pause", "Process",
)  # fmt: skip


class InspectingCase(_Base):
    #: The alias of the database to test.
    using = "default"
    #: Jobs that were claimed to follow others: they may run without a permit of their own.
    followers: set[int]

    @property
    def connection(self) -> BaseDatabaseWrapper:
        """The calling thread's connection."""
        return connections[self.using]

    def rows(self, name: str) -> Any:
        """Return all rows of a model, by its class name."""
        return model(name).objects.using(self.using).all()

    def job(self, job_id: int) -> Any:
        return self.rows("Job").get(pk=job_id)

    def ids(self, state: str) -> list[int]:
        """Return the ids of the jobs in a state such as ``"Ready"``, sorted."""
        return sorted(job_id for (job_id,) in self.values(f"{state}Execution", "job_id"))

    def values(self, name: str, *columns: str) -> list[Any]:
        """Return columns of all rows of a model, as the driver has them."""
        wanted = ", ".join(map(self.connection.ops.quote_name, columns))
        return self._read(f"SELECT {wanted} FROM {self._table(name)}")

    def left(self, key: str = "key") -> int:
        """Return how many permits a semaphore says that a key has left."""
        return int(self.rows("Semaphore").get(pk=key).value)

    def everything(self) -> dict[str, list[Any]]:
        """Return the content of all tables, to check that nothing changes."""
        return {name: self._content(name) for name in TABLES}

    def check_states(self) -> None:
        """Check that every job is in exactly one state, whatever a case has done."""
        places: dict[int, list[str]] = {}
        for job_id, name in self._jobs_in(*(f"{state}Execution" for state in STATES)):
            places.setdefault(job_id, []).append(name.removesuffix("Execution"))
        jobs = dict(self.values("Job", "id", "finished_at"))
        for job_id, states in places.items():
            self.assertEqual(len(states), 1, f"job {job_id} is in several states: {states}")
            self.assertIn(job_id, jobs, f"{states[0]} job {job_id} has no job row")
        for job_id, finished_at in jobs.items():
            ended = places.get(job_id, ["Failed"]) == ["Failed"]
            self.assertEqual(
                finished_at is not None, ended, f"job {job_id}: finished_at {finished_at}, "
                f"but its execution rows are {places.get(job_id, [])}",
            )  # fmt: skip
        stored = {job_id for job_id, _ in self._jobs_in("Checkpoint", "Step")}
        self.assertLessEqual(stored, set(jobs), "what a job has stored has outlasted it")

    def check_permits(self) -> None:
        """Check that ready and running jobs with limits hold permits, and semaphores count them."""
        holders = dict(self.values("Permit", "job_id", "key"))
        claimed = set(self.ids("Claimed"))
        entitled = claimed.union(self.ids("Ready"))
        entitled -= self.followers.intersection(claimed).difference(holders)
        keys = dict(self.values("Job", "id", "concurrency_key"))
        limited = {job_id: key for job_id, key in keys.items() if key is not None}
        wanted = {job_id: key for job_id, key in limited.items() if job_id in entitled}
        self.assertEqual(holders, wanted)
        waiting = {key for (key,) in self.values("BlockedExecution", "concurrency_key")}
        for row in self.rows("Semaphore"):
            held = list(holders.values()).count(row.key)
            left = row.limit - held
            # Below 0, a dialect may store 0 if it counts those that are held each time.
            known = row.value if left >= 0 else max(0, row.value), max(0, left)
            self.assertEqual(*known, f"of {row}, {held} are held")
            self.assertFalse(left > 0 and row.key in waiting, f"of {row}, a job waits for one")

    def _content(self, name: str) -> list[dict[str, Any]]:
        key = self.connection.ops.quote_name(model(name)._meta.pk.column)
        with self.connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {self._table(name)} ORDER BY {key}")
            columns = [column[0] for column in cursor.description]
            return [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]

    def _jobs_in(self, *names: str) -> list[tuple[int, str]]:
        """Return the id of each job in some tables, with the model of the table."""
        return self._read(
            " UNION ALL ".join(
                f"SELECT job_id, '{name}' FROM {self._table(name)}" for name in names
            )
        )

    def _table(self, name: str) -> str:
        return self.connection.ops.quote_name(model(name)._meta.db_table)

    def _read(self, statement: str) -> list[Any]:
        with self.connection.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall())
