"""The statements read what they take, and go to the server once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial

from steady_queue_core.conformance.base import limited_job, new_job
from steady_queue_core.dialects import NewJob, Outcome, QueueSelector, tables
from steady_queue_postgres.claim_sql import LAST_BY_RANK

from ..million.costs import Meter
from .aliases import ALIAS, another_alias
from .cases import Plan, PostgresTestCase

INDEX_OF_ALL, INDEX_OF_QUEUE = "steady_queue_ready_poll", "steady_queue_ready_queue"


class TestPlans(PostgresTestCase):
    """Of tables with history, and statistics that are true."""

    def setUp(self) -> None:
        super().setUp()
        for queue_name in ("a", "b", "c"):
            self.fill(3000, queue_name)
        self.query(f"UPDATE {tables.JOBS} SET finished_at = now() WHERE mod(id, 2) = 0")
        self.query(f"DELETE FROM {tables.READY} WHERE mod(job_id, 2) = 0")
        self.analyze()
        self.worker = self.register()

    def plan_of_claim(self, *patterns: str, pause: str | None = None) -> Plan:
        if pause:
            self.pause(pause)
            self.claim(1, *patterns, process_id=self.worker)
        with self.statements() as sent, self.undone():
            assert self.claim(20, *patterns, process_id=self.worker)
        return self.plan(sent[-1])

    def assert_reads_by_index(self, plan: Plan, index: str) -> None:
        scans = plan.scans(tables.READY)
        assert {("Index Scan", index), ("Tid Scan", "")} <= scans
        assert "Seq Scan" not in {kind for kind, _ in scans}
        assert plan.scans(tables.JOBS) == {("Index Scan", "steady_queue_jobs_pkey")}

    def test_all_queues_are_read_in_the_order_of_the_index(self) -> None:
        plan = self.plan_of_claim()
        self.assert_reads_by_index(plan, INDEX_OF_ALL)
        assert "Sort" not in plan.kinds()

    def test_a_backlog_that_the_statistics_do_not_know_is_read_by_its_ids(self) -> None:
        """Not by the index of unfinished jobs, of which there were none a moment ago."""
        self.query(f"UPDATE {tables.JOBS} SET finished_at = now()")
        self.query(f"ANALYZE {tables.JOBS}")
        self.query(f"UPDATE {tables.JOBS} SET finished_at = NULL WHERE mod(id, 2) = 1")
        self.assert_reads_by_index(self.plan_of_claim(), INDEX_OF_ALL)

    def test_named_queues_are_read_in_the_order_of_the_index(self) -> None:
        plan = self.plan_of_claim("b", "a")
        self.assert_reads_by_index(plan, INDEX_OF_QUEUE)
        assert "Sort" not in plan.kinds()

    def test_patterns_read_each_queue_by_the_index(self) -> None:
        self.assert_reads_by_index(self.plan_of_claim("b*", "a"), INDEX_OF_QUEUE)

    def test_an_empty_queue_is_not_looked_for_among_the_jobs_of_the_only_other_one(self) -> None:
        """By the statistics, every job is in every queue."""
        for table in (tables.JOBS, tables.READY):
            self.query(f"UPDATE {table} SET queue_name = 'b'")
        self.analyze()
        for patterns in (("a", "b"), ("a*", "b")):
            plan = self.plan_of_claim(*patterns)
            self.assert_reads_by_index(plan, INDEX_OF_QUEUE)
            assert ("Index Scan", INDEX_OF_ALL) not in plan.scans(tables.READY)

    def test_beside_a_paused_queue_all_are_read_in_the_order_of_the_index(self) -> None:
        plan = self.plan_of_claim(pause="a")
        self.assert_reads_by_index(plan, INDEX_OF_ALL)
        assert "Sort" not in plan.kinds()

    def test_the_ranks_are_found_by_a_walk_over_the_index(self) -> None:
        kinds = {kind for kind, _ in self.plan(LAST_BY_RANK).scans(tables.READY)}
        assert kinds == {"Index Only Scan"}

    def test_settling_finds_its_rows_by_their_keys(self) -> None:
        claims = self.claim(2000, process_id=self.worker)
        self.analyze()
        with self.statements() as sent, self.undone():
            self.settle(*[self.finished(claim) for claim in claims[:5]])
        plan = self.plan(sent[-1])
        assert plan.scans(tables.JOBS) == {("Index Scan", "steady_queue_jobs_pkey")}
        kinds = {kind for kind, _ in plan.scans(tables.CLAIMED)}
        assert "Seq Scan" not in kinds

    def test_followers_are_read_in_the_order_of_the_index(self) -> None:
        """Not all that wait: those that come next, and what is known of them by their keys."""
        self.enqueue(*[limited_job()] * 2000)
        [holder] = [each for each in self.claim(6000, process_id=self.worker)
                    if each.concurrency_key]  # fmt: skip
        self.analyze()
        self.query(f"ANALYZE {tables.BLOCKED}")
        worker = self.identity(self.worker)
        with self.statements() as sent, self.undone():
            assert self.dialect.claim_followers(self.connection, worker, [holder], 50)
        plan = self.plan(sent[-1])
        scans = plan.scans(tables.BLOCKED)
        assert ("Index Scan", "steady_queue_blocked_release") in scans
        assert "Seq Scan" not in {kind for kind, _ in scans | plan.scans(tables.CLAIMED)}
        assert plan.scans(tables.JOBS) == {("Index Scan", "steady_queue_jobs_pkey")}
        with self.statements() as sent, self.undone():
            free = holder._replace(concurrency_key="free")
            assert not self.dialect.claim_followers(self.connection, worker, [free], 50)
        kinds = {kind for kind, _ in self.plan(sent[-1]).scans(tables.BLOCKED)}
        assert kinds <= {"Index Scan", "Index Only Scan"}
        of_blocked = f"SELECT job_id FROM {tables.BLOCKED}"
        self.query(f"DELETE FROM {tables.JOBS} WHERE id IN ({of_blocked})")
        self.query(f"DELETE FROM {tables.BLOCKED}")

    def test_an_heir_is_found_by_its_key(self) -> None:
        self.enqueue(limited_job(), limited_job())
        claims = self.claim(6000, process_id=self.worker)
        [holder] = [each for each in claims if each.concurrency_key]
        [heir] = self.dialect.claim_followers(
            self.connection, self.identity(self.worker), [holder], 5
        )
        self.analyze()
        with self.statements() as sent, self.undone():
            self.settle(self.finished(holder, heir=(heir.job_id, heir.token)))
        plan = self.plan(sent[-1])
        kinds = {kind for kind, _ in plan.scans(tables.CLAIMED)}
        assert "Seq Scan" not in kinds

    def test_listing_reads_one_row_for_each_queue(self) -> None:
        with self.statements() as sent:
            assert self.dialect.list_queues(self.connection) == ["a", "b", "c"]
        kinds = {kind for kind, _ in self.plan(sent[-1]).scans(tables.READY)}
        assert kinds == {"Index Only Scan"}

    def test_due_jobs_are_read_in_the_order_of_the_index(self) -> None:
        self.query(
            f"""INSERT INTO {tables.SCHEDULED}
                    (job_id, queue_name, "rank", token, created_at, due_at)
                SELECT job_id, queue_name, "rank", 0, now(), now() + job_id * interval '1 second'
                FROM {tables.READY}"""
        )
        self.query(f"DELETE FROM {tables.READY}")
        self.analyze()
        with self.statements() as sent, self.undone():
            self.dialect.dispatch(self.connection, 10)
        plan = self.plan(sent[-1])
        assert ("Index Scan", "steady_queue_scheduled_due") in plan.scans(tables.SCHEDULED)
        assert "Seq Scan" not in {kind for kind, _ in plan.scans(tables.SCHEDULED)}
        assert "Sort" not in plan.kinds()
        self.query(f"DELETE FROM {tables.SCHEDULED}")
        self.query(f"UPDATE {tables.JOBS} SET finished_at = now()")

    def test_jobs_with_limits_are_found_by_their_keys(self) -> None:
        self.enqueue(*[limited_job(f"other{number}") for number in range(2000)])
        self.query(f"ANALYZE {tables.SEMAPHORES}, {tables.PERMITS}")
        later = timedelta(hours=1)
        self.enqueue(*[limited_job("key", delay=later, discards=each) for each in (False, True)])
        self.query(f"UPDATE {tables.SCHEDULED} SET due_at = '1970-01-01'")
        with Meter(self.using).undone(planned=True) as meter:
            assert self.dialect.dispatch(self.connection, 2).moved == 2
            self.enqueue(limited_job("key"))
            self.dialect.admit(self.connection, ["key"])
        assert meter.rows < 100, max(meter.costs)


class TestPlansOnceMade(TestPlans):
    """The same in the session of a queue process, which plans for any number of rows."""

    def setUp(self) -> None:
        self.dialect.prepare(self.connection, impatient=True)
        self.addCleanup(self.connection.close)
        super().setUp()

    def test_the_settled_and_the_taken_are_not_compared_row_by_row(self) -> None:
        claims = self.claim(20, process_id=self.worker)
        with self.statements() as sent, self.undone():
            self.dialect.settle_and_claim(
                self.connection, [self.finished(claim) for claim in claims],
                self.identity(self.worker),
                QueueSelector(), 20,
            )  # fmt: skip
        loops = [node for node in self.plan(sent[-1]).nodes if node["Node Type"] == "Nested Loop"]
        # The spans of the index, one after the other; and the paused queues, when it is asked.
        assert len(loops) == 2


class TestRoundTrips(PostgresTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.connection.__dict__.pop("steady_queue_claimers", None)  # Of earlier tests.

    def assert_one_statement(self, operation: Callable[[], object]) -> None:
        with self.statements() as sent:
            operation()
        assert len(sent) == 1, sent

    def test_each_operation_is_one_statement(self) -> None:
        worker, selector = self.register(), QueueSelector()
        later = timedelta(hours=1)
        self.assert_one_statement(lambda: self.enqueue(new_job()))
        self.assert_one_statement(lambda: self.enqueue(*[new_job(delay=later)] * 700, new_job()))
        self.enqueue_many(30)
        claims = self.claim(1, process_id=worker)  # Who found nothing asks first.
        self.assert_one_statement(lambda: claims.extend(self.claim(10, process_id=worker)))
        outcomes: list[Outcome] = [self.finished(claim) for claim in claims[:4]]
        self.assert_one_statement(lambda: self.settle(*outcomes))
        outcomes = [self.failed(claims[4]), self.finished(claims[5], preserve=False)]
        self.assert_one_statement(
            lambda: self.dialect.settle_and_claim(
                self.connection, outcomes, self.identity(worker), selector, 5
            )
        )
        for patterns in (("default",), ("other", "d*")):
            self.assert_one_statement(partial(self.claim, 2, *patterns, process_id=worker))
        self.assert_one_statement(lambda: self.dialect.dispatch(self.connection, 10))
        self.assert_one_statement(lambda: self.dialect.list_queues(self.connection, "d"))

    def test_who_has_nobody_waiting_asks_once_for_followers(self) -> None:
        self.enqueue(limited_job(), limited_job("other"))
        worker = self.register()
        process, holders = self.identity(worker), self.claim(process_id=worker)
        self.assert_one_statement(
            lambda: self.dialect.claim_followers(self.connection, process, holders, 5)
        )

    def test_a_job_with_a_limit_takes_twice_the_statements_of_another_at_most(self) -> None:
        """The begin and the end of the transaction among them."""
        worker = self.register()

        def life(job: NewJob) -> int:
            with self.statements() as sent:
                self.enqueue(job)
                [claim] = self.claim(1, process_id=worker)
                self.dialect.settle_and_claim(
                    self.connection,
                    [self.finished(claim)],
                    self.identity(worker),
                    QueueSelector(),
                    1,
                )
            return len(sent)

        life(new_job())  # From here on, who found nothing asks first.
        plain = life(new_job())
        assert max(life(limited_job()) for _ in range(3)) <= 2 * plain
        self.assert_one_statement(lambda: self.enqueue(limited_job(), limited_job("other")))
        self.assert_one_statement(lambda: self.enqueue(limited_job("third", discards=True)))

    def test_an_idle_worker_asks_once(self) -> None:
        worker = self.register()
        self.claim(process_id=worker)
        self.assert_one_statement(lambda: self.claim(process_id=worker))


class TestPreparedPlans(PostgresTestCase):
    """Where the project has statements prepared by the server."""

    using = "planned"
    databases = {ALIAS, "planned"}

    @classmethod
    def setUpClass(cls) -> None:
        prepared = {"server_side_binding": True, "prepare_threshold": 1}
        cls.enterClassContext(another_alias(cls.using, prepared))
        super().setUpClass()

    def test_plans_of_empty_tables_do_not_last(self) -> None:
        assert self.elsewhere(self.rows_read_from_end_to_end) < 100

    def rows_read_from_end_to_end(self) -> int:
        """Work as a queue process does while the tables are empty; then when they are full."""
        worker, selector = self.register(), QueueSelector()
        self.dialect.prepare(self.connection, impatient=True)
        for _ in range(10):
            ended = [self.finished(self.claimed_job(), preserve=False) for _ in range(2)]
            self.dialect.settle_and_claim(
                self.connection, ended, self.identity(worker), selector, 5
            )
            self.query(f"VACUUM {tables.JOBS}")
        self.fill(20_000)
        with self.undone():
            before = self.rows_read()
            ended = [self.finished(job, preserve=False) for job in self.claim(5, process_id=worker)]
            self.dialect.settle_and_claim(
                self.connection, ended, self.identity(worker), selector, 5
            )
            return self.rows_read() - before

    def rows_read(self) -> int:
        """Return how many rows this session has read by going through a whole table."""
        [(rows,)] = self.query(
            """SELECT coalesce(sum(seq_tup_read), 0) FROM pg_stat_xact_user_tables
               WHERE relname LIKE 'steady_queue%'"""
        )
        return int(rows)
