"""Middleware for the tests: what it is asked, in order, and what it does."""

from __future__ import annotations

from typing import Any, ClassVar

from steady_queue_core.middleware import Middleware

HERE = __name__
#: What the members of a chain were asked, in order.
seen: list[str] = []


class Refused(Exception):
    """What a middleware raises."""


class Outer(Middleware):
    name = "outer"

    def enqueue(self, calls: Any, proceed: Any) -> Any:
        seen.append(f"{self.name} stores {[list(call.args) for call in calls]}")
        results = proceed(calls)
        seen.append(f"{self.name} stored {[result.id != '' for result in results]}")
        return results

    def execute(self, context: Any, proceed: Any) -> Any:
        seen.append(f"{self.name} runs {context.task_result.args} in attempt {context.attempt}")
        try:
            return proceed()
        except Exception as error:
            seen.append(f"{self.name} sees {type(error).__name__}")
            raise

    async def aexecute(self, context: Any, proceed: Any) -> Any:
        seen.append(f"{self.name} awaits {context.task_result.args}")
        return await proceed()


class Inner(Outer):
    name = "inner"


class Counting(Middleware):
    """Knows its instances."""

    made: ClassVar[list[Counting]] = []

    def __init__(self) -> None:
        self.made.append(self)


class Refusing(Middleware):
    def enqueue(self, calls: Any, proceed: Any) -> Any:
        if any(call.kwargs.get("refuse") for call in calls):
            raise Refused("not this one")
        return proceed(calls)

    def execute(self, context: Any, proceed: Any) -> Any:
        if "refuse" in context.task_result.args:
            raise Refused("not now")
        return proceed()

    async def aexecute(self, context: Any, proceed: Any) -> Any:
        if "refuse" in context.task_result.args:
            raise Refused("not now")
        return await proceed()


class Answering(Middleware):
    """Does what the task was to do."""

    def execute(self, context: Any, proceed: Any) -> Any:
        return "answered"

    async def aexecute(self, context: Any, proceed: Any) -> Any:
        return "answered"


class Carrying(Middleware):
    """Gives each job a header of its own."""

    def enqueue(self, calls: Any, proceed: Any) -> Any:
        for call in calls:
            seen.append(f"{call.task.queue_name} {call.size} {call.recurring} {call.headers}")
        return proceed([
            call.carrying({"number": str(number), "of": call.task.queue_name})
            for number, call in enumerate(calls)
        ])  # fmt: skip

    def execute(self, context: Any, proceed: Any) -> Any:
        seen.append(f"{context.size} {sorted(context.headers.items())}")
        context.headers["number"] = "changed"
        return proceed()

    async def aexecute(self, context: Any, proceed: Any) -> Any:
        seen.append(f"{context.size} {sorted(context.headers.items())}")
        return await proceed()


class Inheriting(Carrying):
    def inherited(self, headers: Any) -> Any:
        return {"of": headers["of"]}


class Disinheriting(Carrying):
    def inherited(self, headers: Any) -> Any:
        raise LookupError("no heirs")


class Careless(Middleware):
    def enqueue(self, calls: Any, proceed: Any) -> Any:
        return proceed([call.carrying({"answer": 42}) for call in calls])


class Judging(Middleware):
    """Asks how attempts end."""

    def execute(self, context: Any, proceed: Any) -> Any:
        try:
            value = proceed()
        except BaseException as error:
            self.note(context, error)
            raise
        seen.append(context.ending_of(None))
        return value

    async def aexecute(self, context: Any, proceed: Any) -> Any:
        try:
            return await proceed()
        except BaseException as error:
            self.note(context, error)
            raise

    def note(self, context: Any, error: BaseException) -> None:
        failed, again = context.is_failure(error), context.will_retry(error)
        seen.append(f"{context.ending_of(error)} {failed:d}{again:d}")


class Forgetful(Middleware):
    def enqueue(self, calls: Any, proceed: Any) -> Any:
        proceed(calls)


class Inventive(Middleware):
    def enqueue(self, calls: Any, proceed: Any) -> Any:
        return [object() for _ in calls]


class OfFunctions(Middleware):
    def execute(self, context: Any, proceed: Any) -> Any:
        return proceed()


class OfCoroutines(Middleware):
    async def aexecute(self, context: Any, proceed: Any) -> Any:
        return await proceed()


class Blocking(Outer):
    def aexecute(self, context: Any, proceed: Any) -> Any:  # type: ignore[override]  # The mistake.
        return proceed()


class Broken(Middleware):
    def __init__(self) -> None:
        raise RuntimeError("no connection")


class Unrelated:
    """Is no middleware."""
