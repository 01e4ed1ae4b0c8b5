"""A database with a long history, by a few statements of its server."""

from __future__ import annotations

from typing import NamedTuple

from django.core.management import call_command
from django.core.management.color import no_style
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import tables
from steady_queue_core.models import (
    BatchMember,
    Dependency,
    Job,
    JobBatch,
    Process,
    RecurringExecution,
)

#: Rows from 1 to a number.
NUMBERS = {
    "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})",
    "postgresql": "WITH n(i) AS (SELECT generate_series(1, {count}))",
}
#: An instant some seconds before the present; the seconds are an expression.
AGO = {
    "sqlite": "(strftime('%Y-%m-%d %H:%M:%f', 'now', (-({seconds})) || ' seconds') || '000')",
    "postgresql": "(now() - ({seconds}) * interval '1 second')",
    "mysql": "(UTC_TIMESTAMP(6) - INTERVAL ({seconds}) * 1000000 MICROSECOND)",
}
#: One ended job in so many has failed.
FAILED_OF = 19
#: The groups that nine of ten failures belong to, the larger one first.
GROUPS = ("a" * 16, "b" * 16)
#: One ended job in so many is kept for a time of its own, which is over.
KEPT_OF = 20
QUEUES, KEYS, SCHEDULES = 10, 20, 50
PROCESSES = 20
DAYS = 2
#: One ended job in so many belongs to a batch that goes on, and there are so many jobs to a batch.
MEMBER_OF, BATCH_OF = 10, 1_000
TABLES_WITH_IDS = [Job, Process, RecurringExecution, JobBatch, BatchMember, Dependency]


class Shape(NamedTuple):
    """How many jobs there are in each state. Their ids follow each other in this order."""

    ended: int
    ready: int
    scheduled: int
    claimed: int = 200
    blocked: int = 2_000
    #: Claims without a job.
    astray: int = 10
    #: Of each schedule.
    slots: int = 1_000

    @classmethod
    def of(cls, jobs: int) -> Shape:
        return cls(jobs * 95 // 100, jobs * 4 // 100, jobs // 100, slots=jobs // 1_000)

    def first(self, state: str) -> int:
        """Return the id of the first job of a state."""
        before = self._fields[: self._fields.index(state)]
        return 1 + sum(getattr(self, name) for name in before)


def numbers_of(count: int) -> str:
    """Return a query of the numbers from 1 to ``count`` at least: recursion takes MySQL long, and
    MariaDB ends it early."""
    places = range(len(str(count)))
    terms = " + ".join(f"{10**place} * d{place}.x" for place in places)
    digits = " STRAIGHT_JOIN ".join(
        f"({_digits_to(min(9, count // 10**place))}) AS d{place}" for place in reversed(places)
    )
    return f"SELECT 1 + {terms} AS i FROM {digits}"


def _digits_to(last: int) -> str:
    return " UNION ALL ".join(f"SELECT {digit} AS x" for digit in range(last + 1))


def build(using: str, shape: Shape) -> None:
    """Make the tables of the queue and fill them. Nobody has looked at them for statistics."""
    call_command("migrate", "steady_queue", database=using, verbosity=0)
    builder = Builder(connections[using], shape)
    builder.prepare()
    builder.jobs()
    builder.executions()
    builder.others()
    builder.batches()
    builder.finish()


def analyze(connection: BaseDatabaseWrapper) -> None:
    """Have the database look at its tables."""
    names = [value for name, value in vars(tables).items() if name.isupper()]
    with connection.cursor() as cursor:
        for name in names:
            cursor.execute(f"ANALYZE {'TABLE ' if connection.vendor == 'mysql' else ''}{name}")


class Builder:
    def __init__(self, connection: BaseDatabaseWrapper, shape: Shape) -> None:
        self.connection, self.shape = connection, shape

    def prepare(self) -> None:
        if self.connection.vendor == "mysql":
            self.execute("SET SESSION unique_checks = 0")
        if self.connection.vendor == "postgresql":
            for name in (tables.JOBS, tables.READY, tables.SCHEDULED, tables.FAILED):
                self.execute(f"ALTER TABLE {name} SET (autovacuum_enabled = false)")

    def finish(self) -> None:
        for statement in self.connection.ops.sequence_reset_sql(no_style(), TABLES_WITH_IDS):
            self.execute(statement)

    def jobs(self) -> None:
        ended, total = self.shape.ended, sum(self.shape[:5])
        step = DAYS * 86_400 / ended
        finished = self.ago(f"({ended} - i) * {step:f} + 1")
        blocked = self.shape.first("blocked")
        self.insert(
            tables.JOBS,
            total,
            id="i",
            queue_name=self.text("'q'", f"i % {QUEUES}"),
            task_path=self.text("'shop.tasks.t'", "i % 7"),
            backend_name="'default'",
            rank="0",
            arguments="""'{"args":[],"kwargs":{}}'""",
            max_attempts="1",
            attempts="0",
            token="0",
            enqueued_at=self.ago(f"({total} - i) * {step:f} + 2"),
            finished_at=f"CASE WHEN i <= {ended} THEN {finished} END",
            concurrency_key=f"CASE WHEN i >= {blocked} OR i > {blocked - KEYS - 1} THEN "
            f"{self.text(self.quoted('k'), f'i % {KEYS}')} END",
            concurrency_limit=f"CASE WHEN i > {blocked - KEYS - 1} THEN 1 END",
        )
        self.insert(
            tables.FAILED,
            ended // FAILED_OF,
            job_id=f"i * {FAILED_OF}",
            created_at=self.ago(f"({ended} - i * {FAILED_OF}) * {step:f} + 1"),
            exception_class="'builtins.ValueError'",
            message="'no'",
            fingerprint=f"CASE WHEN i % 10 = 0 THEN NULL WHEN i % 10 < 7 THEN '{GROUPS[0]}' "
            f"ELSE '{GROUPS[1]}' END",
        )

    def executions(self) -> None:
        old = self.ago("3600 - i / 1000.0")
        for state, table, others in (
            ("ready", tables.READY, {"turn": f"i + {self.shape.first('ready') - 1}"}),
            ("scheduled", tables.SCHEDULED, {"due_at": self.ago("60 - i / 1000.0")}),
            ("claimed", tables.CLAIMED, {"process_id": f"1 + i % {2 * PROCESSES}"}),
            (
                "blocked",
                tables.BLOCKED,
                {
                    "concurrency_key": self.text(
                        "'k'", f"(i + {self.shape.first('blocked') - 1}) % {KEYS}"
                    )
                },
            ),
            ("astray", tables.CLAIMED, {"process_id": "1"}),
        ):
            before = self.shape.first(state) - 1
            self.insert(
                table,
                getattr(self.shape, state),
                job_id=f"i + {before}",
                created_at=old,
                queue_name=self.text("'q'", f"(i + {before}) % {QUEUES}"),
                rank="0",
                token="1" if table == tables.CLAIMED else "0",
                **others,
            )

    def others(self) -> None:
        held = self.shape.first("blocked") - KEYS - 1
        key = self.text("'k'", f"(i + {held}) % {KEYS}")
        self.insert(tables.PERMITS, KEYS, job_id=f"i + {held}", key=key)
        self.insert(tables.SEMAPHORES, KEYS, key=key, value="0", limit="1")
        self.insert(
            tables.PROCESSES, PROCESSES, id="i", kind="'worker'", name=self.text("'worker-'", "i"),
            pid="i", hostname="'here'", metadata="'{}'", created_at=self.ago("9"),
            last_heartbeat_at=self.ago("1"),
        )  # fmt: skip
        ended = self.shape.ended
        step = DAYS * 86_400 / ended
        self.insert(
            tables.RETENTIONS, ended // KEPT_OF, job_id=f"i * {KEPT_OF}",
            expires_at=self.ago(f"({ended} - i * {KEPT_OF}) * {step:f} + 1"),
        )  # fmt: skip
        seconds = DAYS * 86_400 / (SCHEDULES * self.shape.slots)
        self.insert(
            tables.RECURRING_EXECUTIONS, SCHEDULES * self.shape.slots,
            task_key=self.text("'schedule'", f"i % {SCHEDULES}"), created_at=self.ago("9"),
            run_at=self.ago(f"({SCHEDULES * self.shape.slots} - i) * {seconds:f}"),
        )  # fmt: skip
        self.insert(
            tables.RECURRING_TASKS, SCHEDULES, key=self.text("'schedule'", f"i % {SCHEDULES}"),
            task_path="'shop.tasks.t1'", schedule="'every minute'", timezone="''",
            arguments="'{}'", backend_name="'default'", queue_name="'q1'", priority="0",
            description="''", catch_up="'skip'", static="false", enabled="true",
            created_at=self.ago("9"), updated_at=self.ago("9"),
        )  # fmt: skip

    def batches(self) -> None:
        """Have a batch with many members that goes on, some of which wait for others, and many that
        have ended."""
        ready, first = self.shape.ready, self.shape.first("ready")
        ended = self.shape.ended // MEMBER_OF
        moments = {"created_at": self.ago("9"), "started_at": self.ago("9")}
        batch = {"kind": "'workflow'", "description": "'all'", "backend_name": "'default'"}
        self.insert(tables.BATCHES, 1, id="i", **batch, **moments)
        self.insert(
            tables.BATCHES, sum(self.shape[:5]) // BATCH_OF, id="i + 1", **batch, **moments,
            finished_at=self.ago("8"), total="3", failed="i % 2",
        )  # fmt: skip
        member = {"batch_id": "1", "name": "''"}
        self.insert(tables.MEMBERS, ready, id="i", job_id=f"i + {first - 1}", state="0", **member)
        self.insert(
            tables.MEMBERS, ended, id=f"i + {ready}", job_id=f"i + {first - 1 - ended}", state="1",
            **member,
        )  # fmt: skip
        self.insert(
            tables.DEPENDENCIES, ready - 1, id="i", job_id=f"i + {first}", parent_id="i",
            run_when="0", state="0", number="0",
        )  # fmt: skip

    def insert(self, table: str, count: int, **values: str) -> None:
        columns = ", ".join(map(self.connection.ops.quote_name, values))
        rows = f"SELECT {', '.join(values.values())} FROM"
        if self.connection.vendor == "mysql":
            numbers = f"({numbers_of(count)}) AS n WHERE i <= {count} ORDER BY i"
            self.execute(f"INSERT INTO {table} ({columns}) {rows} {numbers}")
        else:
            numbers = NUMBERS[self.connection.vendor].format(count=count)
            self.execute(f"{numbers} INSERT INTO {table} ({columns}) {rows} n")

    def execute(self, statement: str) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(statement)

    def ago(self, seconds: str) -> str:
        return AGO[self.connection.vendor].format(seconds=seconds)

    def quoted(self, text: str) -> str:
        return f"'{text}'"

    def text(self, prefix: str, number: str) -> str:
        if self.connection.vendor == "mysql":
            return f"CONCAT({prefix}, {number})"
        return f"{prefix} || ({number})"
