"""Claiming in many threads and processes: every job is claimed exactly once."""

from __future__ import annotations

import json
import multiprocessing
import os
import tempfile
from functools import partial
from itertools import chain
from pathlib import Path
from threading import Barrier
from typing import Any

import django
from django.apps import apps
from django.db import connections
from django.db.transaction import atomic

from ..dialects.queue_selector import QueueSelector
from ..dialects.records import ProcessIdentity
from ..dialects.registry import dialect_for
from .base import ConformanceCase


class ClaimSharingCases(ConformanceCase):
    def test_every_job_goes_to_exactly_one_of_many_threads(self) -> None:
        ids = self.enqueue_many(60) + self.enqueue_many(60, "mail")
        workers = [self.register() for _ in range(6)]
        together = Barrier(len(workers), timeout=self.patience)

        def work(process_id: int) -> list[int]:
            patterns = [(), ("mail", "default"), ("m*", "d*")][process_id % 3]
            taken: list[int] = []
            together.wait()
            for _ in self.until_deadline():
                claims = self.again(lambda: self.claim(7, *patterns, process_id=process_id))
                taken += [claim.job_id for claim in claims]
                if not claims and not self.ids("Ready"):
                    break
            return taken

        taken = self.in_threads([partial(work, worker) for worker in workers])
        self.assertEqual(sorted(chain.from_iterable(taken)), ids)
        self.assertEqual(self.ids("Claimed"), ids)
        for worker, jobs in zip(workers, taken, strict=True):
            held = self.rows("ClaimedExecution").filter(process_id=worker)
            self.assertEqual(sorted(held.values_list("pk", flat=True)), sorted(jobs))

    def test_every_job_goes_to_exactly_one_of_many_processes(self) -> None:
        ids = self.enqueue_many(80)
        workers = [self.register() for _ in range(3)]
        database = str(self.connection.settings_dict["NAME"])
        _close_all()  # A connection must not be shared with a child.
        context: Any = multiprocessing.get_context("fork" if hasattr(os, "fork") else "spawn")
        with tempfile.TemporaryDirectory() as folder:
            reports = [Path(folder, str(worker)) for worker in workers]
            children = [
                context.Process(
                    target=_claim_all,
                    args=(self.using, database, self.identity(worker), str(report)),
                )
                for worker, report in zip(workers, reports, strict=True)
            ]
            for child in children:
                child.start()
                self.addCleanup(child.kill)
            for child in children:
                child.join(self.patience)
            self.assertEqual([child.exitcode for child in children], [0] * len(children))
            taken = [json.loads(report.read_text()) for report in reports]
        self.assertEqual(sorted(chain.from_iterable(taken)), ids)
        self.assertEqual(self.ids("Claimed"), ids)

    def test_a_second_worker_gets_jobs_while_a_first_holds_its_own(self) -> None:
        """It is not starved, neither with all queues nor with named ones."""
        if not self.dialect.info.skips_locked:
            self.skipTest("DialectInfo.skips_locked is false")
        ids = self.enqueue_many(200)
        first, second = self.register(), self.register()
        for patterns in ((), ("default",)):
            hold = partial(self.claim, 5, *patterns, process_id=first)
            with self.holding(hold), atomic(using=self.using):
                claims = self.claim(5, *patterns, process_id=second)
                self.assertEqual([claim.job_id for claim in claims], ids[5:10])
                self.connection.set_rollback(True)
        self.assertEqual(self.ids("Ready"), ids)


def _claim_all(using: str, database: str, process: ProcessIdentity, report: str) -> None:
    """Claim small batches until nothing is left, and record the jobs."""
    if not apps.ready:
        django.setup()
    connections[using].settings_dict["NAME"] = database
    connection, dialect = connections[using], dialect_for(using)
    dialect.prepare(connection)
    taken: list[int] = []
    while claims := dialect.claim(connection, process, QueueSelector(), 3):
        taken += [claim.job_id for claim in claims]
    Path(report).write_text(json.dumps(taken))
    _close_all()


def _close_all() -> None:
    """Close the connections of the calling thread, and the pools that they came from."""
    connections.close_all()
    for connection in connections.all(initialized_only=True):
        if hasattr(connection, "close_pool"):
            connection.close_pool()
