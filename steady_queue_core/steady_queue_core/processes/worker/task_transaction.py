"""The transaction of a task that is delivered transactionally, and of the outcome of its job."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from types import TracebackType
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.db import Error, connections
from django.db.transaction import TransactionManagementError, on_commit

from ...dialects import Ending, dialect_for
from ...errors import (
    OutsideTransactionError,
    RollbackRequestedError,
    TransactionEndedError,
    UndeliverableError,
)
from ...features.delivery.options import TRANSACTIONAL
from ...logging import about, get_logger
from ..base.execute_wrappers import add_wrapper
from . import outcomes
from .attempt import Attempt, RunResult
from .callbacks import with_callback
from .sql_writes import is_write

logger = get_logger("steady_queue.worker")

ENDED = (
    "The task has ended, or tried to end, the transaction that it is part of: that is for the "
    "worker to do. Leave out transaction.commit(), set_autocommit(), connection.close(), COMMIT "
    "and what the database commits by itself, or choose another delivery."
)
MARKED = (
    "The task has returned, but its transaction is marked for a rollback: everything was rolled "
    "back. Raise an exception instead; put atomic() around what may fail in the database."
)


#: Seconds until a job is tried again whose transaction could not begin.
BUSY_PAUSE = 1.0


def is_transactional(attempt: Attempt) -> bool:
    """Whether a task and the outcome of its job are one transaction."""
    return attempt.metadata.delivery == TRANSACTIONAL


def refuse_transaction(attempt: Attempt) -> None:
    """Raise ``UndeliverableError`` if a task that is a coroutine is to be part of a transaction."""
    if is_transactional(attempt):
        raise UndeliverableError(
            "The job is to be delivered transactionally, but its task is a coroutine now. Make it "
            "a function again, or enqueue the job again."
        )


def run_in_transaction(
    attempt: Attempt, work: Callable[[], RunResult], seal: Callable[[], None]
) -> RunResult:
    """Run the task of an attempt by ``work``, and settle its job with what follows from that, in
    one transaction; see :meth:`TaskTransaction.run`. Raises ``UndeliverableError``."""
    claim = attempt.claim
    try:
        transaction = TaskTransaction(_database_of(attempt))
        return transaction.run(lambda: with_callback(work(), claim), seal)
    except NotBegun:
        return RunResult(outcomes.postponed(claim, claim.errors, BUSY_PAUSE))
    except BaseException:
        attempt.forget_end()
        raise


def _database_of(attempt: Attempt) -> str:
    """Return the alias of the database that a job is in. Raises ``UndeliverableError`` if its
    backend stores jobs elsewhere: then a row says so that was tampered with, or settings of the
    past."""
    using = attempt.backend.database
    if attempt.using is not None and using != attempt.using:
        raise UndeliverableError(
            f"The job is in the database {attempt.using!r}, but its backend "
            f"{attempt.claim.backend_name!r} stores jobs in {using!r}: a task that is delivered "
            "transactionally cannot tell which of them it writes to. Enqueue it again."
        )
    return using


class NotBegun(Exception):
    """Others have kept the transaction from beginning for too long. The task has not started."""


class _Undone(Exception):
    """Rolls a transaction back that ``result`` is not to be part of."""

    def __init__(self, result: RunResult) -> None:
        self.result = result


class TaskTransaction:
    """Runs a task, and settles its job, in one transaction of the calling thread."""

    def __init__(self, using: str) -> None:
        self.using = using
        self.connection: Any = connections[using]
        self.dialect = dialect_for(using)

    def run(self, work: Callable[[], RunResult], seal: Callable[[], None]) -> RunResult:
        """Call ``work``, which runs the task, and settle its result, which says so afterwards.

        Only a result that finishes the job is part of the transaction. Any other is returned after
        a rollback, to be settled by the caller, as is that of a claim that was lost. ``seal`` is
        called before the outcome is stored; if it raises, all is rolled back as well.

        Raises ``NotBegun``, what ``work`` raises, ``TransactionEndedError`` and
        ``RollbackRequestedError``, and errors of the database, after a rollback.
        """
        try:
            result, callbacks = self._run(work, seal)
        except _Undone as undone:
            return undone.result
        self._call(callbacks, result)
        return result._replace(settled=True)

    def _run(
        self, work: Callable[[], RunResult], seal: Callable[[], None]
    ) -> tuple[RunResult, list[Any]]:
        with ExitStack() as transaction:
            self._begin(transaction)
            with only_writes_to(self.using), OpenTransaction(self.using):
                result = work()
                if result.outcome.ending is not Ending.FINISHED:
                    raise _Undone(result)
            seal()
            # They are called once the transaction has been left: what they raise is no reason to
            # believe that the commit has failed.
            callbacks, self.connection.run_on_commit = self.connection.run_on_commit, []
            if not self.dialect.settle(self.connection, [result.outcome]):
                raise _Undone(result._replace(settled=False))
            if self.connection.needs_rollback:  # Django would roll back without a word.
                raise RollbackRequestedError(MARKED)
        return result, callbacks

    def _begin(self, transaction: ExitStack) -> None:
        try:
            if not self.connection.get_autocommit():
                # With AUTOCOMMIT = False, Django would leave the commit to the task. The next one
                # gets a new connection.
                self.connection.rollback()  # What was read so far has begun a transaction.
                self.connection.set_autocommit(True)
            transaction.enter_context(self.dialect.transaction(self.connection))
        except Error as error:
            if self.dialect.is_contention(self.connection, error):
                raise NotBegun from error
            raise

    def _call(self, callbacks: Any, result: RunResult) -> None:
        """Call what the task has registered for after the commit, as Django does."""
        try:
            for _, function, robust in callbacks:
                on_commit(function, using=self.using, robust=robust)
        except BaseException:  # The job has finished, whatever a callback raises.
            logger.exception(
                "A callback of job %d failed after the commit; those after it are not called",
                result.outcome.job_id,
                extra=about(
                    "task.callback_failed",
                    task_id=str(result.outcome.job_id),
                    queue=result.outcome.queue_name,
                ),
            )


class OpenTransaction:
    """A part of a transaction that does not end it: raises ``TransactionEndedError`` if it did, and
    ``RollbackRequestedError`` if it cannot be committed any more.

    A savepoint tells: it lasts as long as its transaction. The state of the session does not, for
    what was ended behind our back may have begun again.
    """

    def __init__(self, using: str) -> None:
        self.connection: Any = connections[using]
        self.dialect = dialect_for(using)

    def __enter__(self) -> None:
        self._session = self.connection.connection
        self._outer_blocks = list(self.connection.savepoint_ids)
        self._savepoint = self.connection.savepoint()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            self._require_open()
        elif isinstance(error, TransactionManagementError) and _was_refused(error):
            raise TransactionEndedError(ENDED) from error

    def _require_open(self) -> None:
        connection = self.connection
        if (
            connection.closed_in_transaction
            or connection.connection is not self._session
            or not connection.in_atomic_block
            or connection.savepoint_ids != self._outer_blocks
        ):
            raise TransactionEndedError(ENDED)
        if connection.needs_rollback:
            raise RollbackRequestedError(MARKED)
        try:
            connection.savepoint_commit(self._savepoint)
        except Error as error:
            if self.dialect.is_lost_connection(connection, error):
                raise
            raise self._reason() from error

    def _reason(self) -> Exception:
        """Return why the savepoint could not be released."""
        try:
            self.connection.savepoint_rollback(self._savepoint)
        except Error:
            return TransactionEndedError(ENDED)
        return RollbackRequestedError(MARKED)


def _was_refused(error: TransactionManagementError) -> bool:
    """Whether Django has refused to end a transaction inside ``atomic()``."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_code.co_name == "validate_no_atomic_block"


@contextmanager
def only_writes_to(using: str) -> Iterator[None]:
    """Refuse to write, in the calling thread, to any other database."""
    refuses = True

    def refuse(execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:
        if refuses and is_write(sql, context["connection"]):
            alias = context["connection"].alias
            raise OutsideTransactionError(
                f"The task is part of a transaction on {using!r}, and writes to {alias!r}, where "
                "nothing would undo that. Do it in transaction.on_commit(), or in another task."
            )
        return execute(sql, params, many, context)

    others = [*_connections_but(using)]
    for connection in others:
        add_wrapper(connection, refuse)
    try:
        yield
    finally:
        # First: an interruption may keep the rest from being done.
        refuses = False
        for connection in others:
            if refuse in connection.execute_wrappers:
                connection.execute_wrappers.remove(refuse)


def _connections_but(using: str) -> Iterator[Any]:
    """Yield the calling thread's connections to all other databases, opened or not."""
    for alias in connections:
        if alias != using:
            with suppress(ImproperlyConfigured):  # Nobody can write there at all.
                yield connections[alias]
