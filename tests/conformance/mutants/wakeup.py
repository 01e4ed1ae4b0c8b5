"""Bells that do not ring, or not when they should."""

from __future__ import annotations

import os
from time import sleep

from .mutant import fails, rows, sqlite


class Pipe:
    """A bell that somebody could ring."""

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
    """The real bell, for a mutant to change."""

    def __init__(self, bell) -> None:
        self.bell = bell
        self.in_order = bell.in_order

    def fileno(self) -> int:
        return self.bell.fileno()

    def clear(self) -> None:
        self.bell.clear()

    def close(self) -> None:
        self.bell.close()


class Once(Wrapped):
    def __init__(self, bell) -> None:
        super().__init__(bell)
        self.silent = Pipe()

    def fileno(self) -> int:
        return self.bell.fileno() if self.silent is None else self.silent.fileno()

    def close(self) -> None:
        super().close()
        self.silent.close()


class Open(Wrapped):
    def close(self) -> None:
        self.kept = os.dup(self.fileno())


@fails("there_is_a_bell_where_the_dialect_says_so", hook="wakeup")
def has_no_bell(connection):
    return None


@fails("the_bell_rings_after_anothers_commit_each_time",
       "the_bell_rings_for_another_process_that_came_later", hook="wakeup")  # fmt: skip
def never_rings(connection):
    return Pipe()


@fails("clearing_silences_the_bell_and_never_blocks", hook="wakeup")
def rings_on_and_on(connection):
    return Pipe(rings=True)


@fails("clearing_silences_the_bell_and_never_blocks", hook="wakeup")
def clears_slowly(connection):
    return Slow()


@fails("the_bell_rings_after_anothers_commit_each_time", hook="wakeup")
def goes_silent_for_good(connection):
    return Once(sqlite.steady_queue_wakeup(connection))


@fails("the_bell_rings_after_anothers_commit_each_time", hook="wakeup")
def says_that_it_is_broken(connection):
    bell = Wrapped(sqlite.steady_queue_wakeup(connection))
    bell.in_order = False
    return bell


@fails("a_closed_bell_has_given_up_its_descriptor", hook="wakeup")
def stays_open(connection):
    return Open(sqlite.steady_queue_wakeup(connection))


@fails("ringing_is_harmless_whether_anybody_listens", hook="ring")
def rings_by_deleting(connection, queue_names):
    rows(connection, "ReadyExecution").filter(queue_name="default").delete()


@fails("ringing_is_harmless_whether_anybody_listens", hook="ring")
def rings_for_one_queue_at_least(connection, queue_names):
    assert queue_names[0]
