"""A project on a server of its own, at work: what is done to the server must not stop it."""

from __future__ import annotations

from pathlib import Path

from ..servers.breakable import WORKER, BreakableServer
from . import proc
from .harness import Project
from .scenarios import SHORT_LEASE, durations, queue, stop_all, verdict
from .waiting import wait_for

#: The processes of a supervisor, itself among them.
PROCESSES = 4
AS_WORKER = f"DATABASES['default'] |= {{'USER': '{WORKER}', 'PASSWORD': ''}}"


class Plant:
    """One supervisor, which has to survive everything, and its project."""

    def __init__(self, server: BreakableServer, folder: Path) -> None:
        self.server = server
        options = queue(processes=2, threads=2, shutdown_timeout=5, **SHORT_LEASE)
        self.project = Project(folder, None, options, AS_WORKER, server=server.address)
        try:
            self.supervisor = self.project.start()
            self.supervisor.wait_ready(2)
        except BaseException:
            self.project.close()
            raise
        self.family = set(self.supervisor.children())
        #: Jobs whose tasks fail by themselves.
        self.own_failures: list[int] = []
        self._read = 0

    def enqueue(self, count: int, longest: float = 0.02) -> list[int]:
        return self.project.enqueue("work", *durations(count, longest))

    def wait_attempts(self, count: int) -> None:
        """Wait until so many more tasks have started."""
        wanted = len(self.project.attempts()) + count
        wait_for(lambda: len(self.project.attempts()) >= wanted, 30, f"{count} starts")

    def wait_calm(self) -> None:
        """Wait until every outage that a process has told of is over."""

        def calm() -> bool:
            whole = self.supervisor.errors()
            return whole.count(" is unavailable: ") == whole.count(" is available again ")

        wait_for(calm, 30, "the end of all outages")

    def said(self) -> str:
        """Return what the processes have said since they were last asked."""
        whole = self.supervisor.errors()
        news, self._read = whole[self._read :], len(whole)
        return news

    def wait_said(self, words: str, times: int = 1, seconds: float = 20.0) -> None:
        """Wait until the processes have said something, since they were last asked."""
        wait_for(
            lambda: self.supervisor.errors()[self._read :].count(words) >= times,
            seconds, f"{times} x {words!r}",
        )  # fmt: skip

    def check(self) -> str:
        """Return what the system checks find wrong with the server, while nobody works much."""
        before = {pid: proc.processor_time(pid) for pid in self.family}
        checked = self.project.manage("check", "--database", "default", "--tag", "steady_queue")
        spent = [proc.processor_time(pid) - already for pid, already in before.items()]
        assert max(spent) < 0.5
        assert checked.returncode == 1
        assert "Traceback" not in checked.stderr
        return checked.stderr

    def require_all_done(self, seconds: float = 40.0) -> None:
        """Every job has run once, by the processes that were there from the beginning."""
        self.project.wait_done(seconds)
        found = verdict(self.project, own_failures=self.own_failures)
        assert found == [], self.project.logs()
        assert len(self.project.attempts()) == len(self.project.snapshot().jobs)
        assert set(self.supervisor.children()) == self.family, self.project.logs()

    def require_few_words(self, most: int) -> str:
        """What was said since the last time is no flood; return it."""
        news = self.said()
        assert len(news.splitlines()) <= most, news
        assert "Traceback" not in news, news
        return news

    def close(self) -> None:
        """Stop in good order; whatever fails, leave no process behind."""
        try:
            self.server.restore()
            stop_all(self.project)
        finally:
            self.project.close()
