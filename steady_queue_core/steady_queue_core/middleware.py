"""Middleware: code of the project around the enqueues and the executions of a backend's tasks.

::

    class Timed(Middleware):
        def execute(self, context, proceed):
            began = time.monotonic()
            try:
                return proceed()
            finally:
                record(context.task_result.task.module_path, time.monotonic() - began)

        async def aexecute(self, context, proceed):
            ...
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from inspect import iscoroutinefunction
from typing import Any, Protocol, Self, TypeVar

from django.utils.module_loading import import_string

from .compat import AnyTask, AnyTaskResult, TaskContext


class NewCall(Protocol):
    """A call that is about to be stored."""

    task: AnyTask
    args: Any
    kwargs: Any

    @property
    def batch_id(self) -> int | None:
        """The batch that it is added to; ``None``: none."""

    @property
    def recurring(self) -> str | None:
        """The key of the recurring task that it is a run of; ``None``: of none."""

    @property
    def recurring_task(self) -> Any:
        """The definition of that recurring task, with its ``key`` and ``schedule``; or ``None``."""

    @property
    def size(self) -> int:
        """Bytes of the encoded arguments."""

    @property
    def headers(self) -> dict[str, str]:
        """What middleware has given it on its way."""

    def carrying(self, headers: Mapping[str, str]) -> Self:
        """Return this call with ``headers`` for its job, beside those that it has; give that to
        ``proceed`` in its place. Raises ``ValueError``."""


CallT = TypeVar("CallT", bound=NewCall)


class Middleware:
    """The base class: lets everything pass. Each thread that enqueues has an instance for each
    backend, and the executions of a worker share one, whose methods several threads call at
    once."""

    def enqueue(
        self, calls: Sequence[CallT], proceed: Callable[[Sequence[CallT]], list[AnyTaskResult]]
    ) -> list[AnyTaskResult]:
        """Store ``calls`` by ``proceed(calls)``, and return the results, one for each. Several
        calls are those of one ``enqueue_many``. An exception is raised to who enqueues."""
        return proceed(calls)

    def inherited(self, headers: Mapping[str, str]) -> Mapping[str, str]:
        """Return those of the ``headers`` of a job that its callbacks have as well: these pass
        through no ``enqueue``."""
        return {}

    def execute(self, context: TaskContext, proceed: Callable[[], Any]) -> Any:
        """Run a function by ``proceed()``, and return what the task returns. An exception ends the
        attempt as if the task had raised it."""
        return proceed()

    async def aexecute(self, context: TaskContext, proceed: Callable[[], Awaitable[Any]]) -> Any:
        """Run a coroutine by ``await proceed()``. Async version of :meth:`execute`."""
        return await proceed()


#: What is around the middleware of all backends, the outermost first.
_everywhere: tuple[Middleware, ...] = ()


def install(middleware: Middleware) -> None:
    """Put ``middleware`` around those of all backends in this process, inside of what was installed
    before. For ``AppConfig.ready``. Raises ``TypeError`` and ``ValueError`` for what is none."""
    global _everywhere
    if not isinstance(middleware, Middleware):
        raise TypeError(
            f"install() needs an instance of a subclass of Middleware, not {middleware!r:.100}"
        )
    _require_both_executions(type(middleware))
    if not any(each is middleware for each in _everywhere):
        _everywhere = (*_everywhere, middleware)


def uninstall(middleware: Middleware) -> None:
    """Take away what ``install()`` has put around all backends."""
    global _everywhere
    _everywhere = tuple(each for each in _everywhere if each is not middleware)


def with_installed(own: MiddlewareChain | None) -> MiddlewareChain | None:
    """Return what is around the enqueues and executions of a backend with ``own`` middleware."""
    if not _everywhere:
        return own
    return MiddlewareChain(_everywhere if own is None else (*_everywhere, *own.members))


class QuietCall(partial[Any]):
    """A call that does not show its arguments: reports of errors show the variables of frames."""

    def __repr__(self) -> str:
        return f"<call of {getattr(self.func, '__qualname__', type(self.func).__qualname__)}>"


class MiddlewareChain:
    """The middleware of a backend, the outermost first."""

    def __init__(self, members: Sequence[Middleware]) -> None:
        self.members = members

    @classmethod
    def load(cls, paths: Sequence[str]) -> MiddlewareChain | None:
        """Return the middleware at ``paths``, or ``None`` if there is none. Raises ``ValueError``
        for a path that leads to none."""
        return cls([_made(path) for path in paths]) if paths else None

    def enqueue(
        self, calls: Sequence[CallT], store: Callable[[Sequence[CallT]], list[AnyTaskResult]]
    ) -> list[AnyTaskResult]:
        """Store ``calls`` by ``store``, through all members."""
        for member in reversed(self.members):
            store = QuietCall(_enqueue, member, store)
        return store(calls)

    def inherited(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Return those of the headers of a job that its callbacks have as well."""
        found: dict[str, str] = {}
        for member in self.members:
            found |= member.inherited(headers)
        return found

    def execute(self, context: TaskContext, run: Callable[[], Any]) -> Any:
        """Run a function by ``run``, through all members."""
        for member in reversed(self.members):
            run = QuietCall(member.execute, context, run)
        return run()

    async def aexecute(self, context: TaskContext, run: Callable[[], Awaitable[Any]]) -> Any:
        """Run a coroutine by ``run``, through all members."""
        for member in reversed(self.members):
            run = QuietCall(member.aexecute, context, run)
        return await run()


def _enqueue(
    member: Middleware,
    store: Callable[[Sequence[CallT]], list[AnyTaskResult]],
    calls: Sequence[CallT],
) -> list[AnyTaskResult]:
    results = member.enqueue(calls, store)
    if not isinstance(results, list) or len(results) != len(calls):
        raise TypeError(
            f"{_name_of(type(member))}.enqueue() must return the list of results that "
            f"proceed(calls) returns, one for each call, not {type(results).__name__}"
        )
    return results


def _made(path: str) -> Middleware:
    try:
        found = import_string(path)
    except ImportError as error:
        raise ValueError(f"{path!r} cannot be imported: {error}") from error
    if not (isinstance(found, type) and issubclass(found, Middleware)):
        raise ValueError(f"{path!r} is not a subclass of steady_queue_core.middleware.Middleware")
    _require_both_executions(found)
    try:
        return found()
    except Exception as error:
        raise ValueError(f"{path}() raised {type(error).__name__}: {error}") from error


def _require_both_executions(kind: type[Middleware]) -> None:
    """Raise ``ValueError`` for a class that would leave out functions, or coroutines, unawares."""
    own = {name: getattr(kind, name) is not getattr(Middleware, name) for name in _EXECUTIONS}
    if own["execute"] != own["aexecute"]:
        [there], [missing] = (
            [name for name in own if own[name] is wanted] for wanted in (True, False)
        )
        raise ValueError(
            f"{_name_of(kind)} has {there}(), but no {missing}(): it would leave out tasks that "
            f"are {_EXECUTIONS[missing]}"
        )
    if not iscoroutinefunction(kind.aexecute):
        raise ValueError(f"{_name_of(kind)}.aexecute() must be a coroutine function")


_EXECUTIONS = {"execute": "functions", "aexecute": "coroutines"}


def _name_of(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
