"""Modes that change how a server reads statements: what works under them, and what is said."""

from __future__ import annotations

from steady_queue_core.conformance.base import new_job

from .cases import ServerCase, on_each_server

NAMES = ("a_b", "axb", "50%", "\\'\"")


class Modes(ServerCase):
    def have(self, modes: str) -> None:
        """Add modes to those of this session."""
        self.addCleanup(self.connection.close)
        self.connection.close()
        # Without values, before which some drivers ask for the mode, once.
        self.sql(f"SET SESSION sql_mode = CONCAT(@@sql_mode, ',{modes}')")

    def said(self) -> list[str | None]:
        return [each.id for each in self.dialect.checks(self.connection) if "sql_mode" in each.msg]

    def run_all(self) -> None:
        """Enqueue, claim and end a job of each name."""
        self.enqueue(*[new_job(name, task_path=name) for name in NAMES])
        claims = self.claim()
        self.assertEqual([each.task_path for each in claims], [*NAMES])
        self.assertEqual(len(self.settle(*map(self.finished, claims))), len(NAMES))
        self.assertEqual(
            [*self.rows("Job").order_by("pk").values_list("queue_name", flat=True)], [*NAMES]
        )

    def found(self) -> int:
        before = len(self.warned)
        number = self.rows("Job").filter(task_path__contains="a_").count()
        del self.warned[before:]  # Of the lookup, which is Django's.
        return int(number)

    def test_modes_under_which_everything_works_are_not_warned_of(self) -> None:
        self.have("ANSI_QUOTES,PIPES_AS_CONCAT")
        self.run_all()
        self.assertEqual(self.found(), 1)
        self.assertEqual(self.said(), [])

    def test_the_queue_works_where_lookups_do_not_which_is_said(self) -> None:
        self.have("NO_BACKSLASH_ESCAPES")
        self.run_all()
        self.assertEqual(self.found(), 0)
        self.assertEqual(self.said(), ["steady_queue.W303"])


on_each_server(globals(), Modes)
