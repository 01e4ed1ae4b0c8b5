"""Listeners that are not woken, or not when they should be."""

from __future__ import annotations

import os
from contextlib import suppress
from time import sleep

from .mutant import add, fails, rows, sqlite


class Pipe:
    """A listener that somebody could wake."""

    in_order = True

    def __init__(self, rings: bool = False) -> None:
        self.reading, self.writing = os.pipe()
        if rings:
            os.write(self.writing, b"!")

    def fileno(self) -> int:
        return self.reading

    def clear(self) -> None:
        pass

    def close(self) -> None:
        os.close(self.reading)
        os.close(self.writing)


class Slow(Pipe):
    def clear(self) -> None:
        sleep(0.1)


class Wrapped:
    """The real listener, for a mutant to change."""

    def __init__(self, listener) -> None:
        self.listener = listener
        self.in_order = listener.in_order

    def fileno(self) -> int:
        return self.listener.fileno()

    def clear(self) -> None:
        self.listener.clear()

    def close(self) -> None:
        self.listener.close()


class Once(Wrapped):
    def __init__(self, listener) -> None:
        super().__init__(listener)
        self.silent = Pipe()

    def fileno(self) -> int:
        return self.listener.fileno() if self.silent is None else self.silent.fileno()

    def close(self) -> None:
        super().close()
        self.silent.close()


class Open(Wrapped):
    def close(self) -> None:
        self.kept = os.dup(self.fileno())


class Told(Pipe):
    """A listener that hears of new jobs only."""

    latest: Told | None = None

    def __init__(self) -> None:
        super().__init__()
        os.set_blocking(self.reading, False)
        Told.latest = self

    def clear(self) -> None:
        with suppress(BlockingIOError):
            os.read(self.reading, 4096)

    def close(self) -> None:
        super().close()
        Told.latest = None


def tell(connection, queue_names):
    if Told.latest is not None:
        os.write(Told.latest.writing, b"!")


add("hears_of_new_jobs_only", {"wakeup": lambda connection: Told(), "ring": tell},
    "a_listener_that_hears_commits_is_woken_when_a_job_ends")  # fmt: skip


@fails("there_is_a_listener_where_the_dialect_says_so", hook="wakeup")
def has_no_listener(connection):
    return None


@fails("a_listener_is_woken_after_anothers_commit_each_time",
       "a_listener_is_woken_for_another_process_that_came_later", hook="wakeup")  # fmt: skip
def never_rings(connection):
    return Pipe()


@fails("clearing_silences_a_listener_and_never_blocks", hook="wakeup")
def rings_on_and_on(connection):
    return Pipe(rings=True)


@fails("clearing_silences_a_listener_and_never_blocks", hook="wakeup")
def clears_slowly(connection):
    return Slow()


@fails("a_listener_is_woken_after_anothers_commit_each_time", hook="wakeup")
def goes_silent_for_good(connection):
    return Once(sqlite.steady_queue_wakeup(connection))


@fails("a_listener_is_woken_after_anothers_commit_each_time", hook="wakeup")
def says_that_it_is_broken(connection):
    listener = Wrapped(sqlite.steady_queue_wakeup(connection))
    listener.in_order = False
    return listener


@fails("a_closed_listener_has_given_up_its_descriptor", hook="wakeup")
def stays_open(connection):
    return Open(sqlite.steady_queue_wakeup(connection))


@fails("ringing_is_harmless_whether_anybody_listens", hook="ring")
def rings_by_deleting(connection, queue_names):
    rows(connection, "ReadyExecution").filter(queue_name="default").delete()


@fails("ringing_is_harmless_whether_anybody_listens", hook="ring")
def rings_for_one_queue_at_least(connection, queue_names):
    assert queue_names[0]
