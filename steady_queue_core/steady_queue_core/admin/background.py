"""Actions on long lists, which go on in the background: a job does what is left of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple, cast

from django.contrib.auth import get_user_model
from django.core.exceptions import ImproperlyConfigured, ObjectDoesNotExist, ValidationError
from django.http import HttpRequest

from ..backend import SteadyQueueBackend
from ..compat import DEFAULT_TASK_BACKEND_ALIAS, DEFAULT_TASK_QUEUE_NAME
from ..configuration import ConfigurationError
from ..configured_backends import backends_on
from ..dialects.database import Database
from ..errors import SteadyQueueError
from ..features.delivery.options import AT_LEAST_ONCE
from ..features.expiry.options import NEVER
from ..features.time_limits.options import NEVER as NO_TIMEOUT
from ..listings.processes import listed_processes, workers_of
from ..listings.selection import insisting
from ..models import Pause
from ..tasks.copies import rebuilt
from ..tasks.metadata import JobMetadata
from ..tasks.stand_ins import undeclared
from . import actions
from .actions import log_act
from .job_actions import JOB_ACTIONS, JobAction
from .job_lists import JobList

#: Jobs of a list above which the confirmation offers to go on in the background.
MANY = 5_000
#: Attempts at the whole. Each goes on where the one before has ended.
MOST_ATTEMPTS = 25
#: Seconds between them.
RETRY_PAUSE = 10.0


class NoLongerPermitted(SteadyQueueError):
    """The user has lost the permission for what goes on in the background."""


class Place(NamedTuple):
    """Where the job of an action is enqueued."""

    backend: SteadyQueueBackend
    queue_name: str
    #: Whether a live worker serves the queue, which is not paused.
    is_served: bool

    @property
    def warning(self) -> str:
        """What to say of it before; nothing if all is well."""
        if self.is_served:
            return ""
        return (
            f'No live worker serves queue "{self.queue_name}", or it is paused: what goes on in '
            "the background waits until one does."
        )


def place_in(using: str, queue_name: str = "") -> Place | None:
    """Return where a job can be enqueued that acts on those of a database: in the queue of that
    name, or in one that a worker serves; ``None``: nowhere."""
    try:
        backends = backends_on(using)
    except (ConfigurationError, ImproperlyConfigured):
        return None  # Reported by the system checks.
    places = [
        (backend, name)
        for backend in backends.values()
        for name in _queues_of(backend)
        if queue_name in ("", name)
    ]
    if queue_name and not places:
        places = [(each, queue_name) for each in backends.values() if not each.queues]
    processes = listed_processes(using)
    paused = set(Pause.objects.using(using).values_list("pk", flat=True))
    for backend, name in places:
        if name not in paused and workers_of(processes, name):
            return Place(backend, name, is_served=True)
    return Place(*places[0], is_served=False) if places else None


def _queues_of(backend: SteadyQueueBackend) -> list[str]:
    """Return the queues that a backend allows, that of Django's choice first."""
    names = backend.queues or {DEFAULT_TASK_QUEUE_NAME}
    return sorted(names, key=lambda name: (name != DEFAULT_TASK_QUEUE_NAME, name))


def enqueue(
    place: Place, action: JobAction, jobs: JobList, request: HttpRequest, position: str = ""
) -> int:
    """Have a job do the action on those of the jobs that come after ``position``; return its
    id."""
    task = rebuilt(cast(Any, act_on_list), backend=place.backend.alias, queue_name=place.queue_name)
    options = {
        "action": action.name,
        "options": dict(action.options),
        "jobs": jobs.stored,
        "user_id": str(request.user.pk),
        "position": position,
    }
    return int(place.backend.enqueue_now(task, [], options).id)


class Run:
    """An action on the jobs of a list, for a user, in parts that are one transaction each."""

    def __init__(self, action: JobAction, jobs: JobList, user_id: str) -> None:
        self.action, self.jobs, self.user_id = action, jobs, user_id
        self.database = Database.of(jobs.using)
        #: How many jobs were changed, and how many left alone.
        self.changed = self.left = 0

    @property
    def words(self) -> str:
        """What has come of it so far."""
        told = self.action.summary(self.changed)
        return f"{told}; {self.left:,} {self.action.left_alone}" if self.left else told

    def go_on(self, context: Any, position: str) -> None:
        """Do what comes after a position, and store where it is after each part."""
        total = self.jobs.listing(self.action).count()
        known = total.number if total is not None and total.exact else None
        for ids, after in self.jobs.listing(self.action).parts(position, actions.BATCH):
            user = self.permitted_user()
            self._do(context, user.pk, ids, after)
            done = self.changed + self.left
            context.progress(done, known and max(known, done), self.words[:200])
        log_act(self.permitted_user().get_username(), self.jobs.words, self.words)
        done = self.changed + self.left
        context.progress(done, done or None, self.words[:200])

    def permitted_user(self) -> Any:
        """Return the user. Raises ``NoLongerPermitted``."""
        users = get_user_model()._default_manager
        try:
            user: Any = users.get(pk=self.user_id)
        except (ObjectDoesNotExist, ValidationError, ValueError):
            raise NoLongerPermitted(f"There is no user {self.user_id!r} any more.") from None
        names = ["view_job", self.action.permission]
        if self.jobs.arguments:
            names.append("view_arguments")
        needed = [f"steady_queue.{name}" for name in names]
        if user.is_active and user.is_staff and user.has_perms(needed):
            return user
        raise NoLongerPermitted(
            f"User {user.get_username()!r} may no longer do this: it needs an active member of "
            f"staff with the permissions {' and '.join(needed)}. {self.words} before."
        )

    def _do(self, context: Any, user_id: Any, ids: Sequence[int], after: str) -> None:
        before = self.changed, self.left

        def do() -> None:
            self.changed, self.left = before
            with self.database.transaction():
                self._do_once(context, user_id, ids, after)

        insisting(self.database, do)

    def _do_once(self, context: Any, user_id: Any, ids: Sequence[int], after: str) -> None:
        history = partial(self.action.add_history, user_id)
        done = self.action.act_on(self.jobs.using, self.jobs.still(ids), history)
        self.changed += done
        self.left += len(ids) - done
        context.checkpoint([after, self.changed, self.left])


def act_on_list(
    context: Any,
    *,
    action: str,
    options: dict[str, Any],
    jobs: dict[str, Any],
    user_id: str,
    position: str,
) -> int:
    run = Run(JOB_ACTIONS[action].given(options), JobList.read(jobs), user_id)
    if context.checkpointed is not None:
        position, run.changed, run.left = context.checkpointed
    run.go_on(context, position)
    return run.changed


def _pause(error: BaseException, result: Any) -> float | None:
    """Return the seconds until the next attempt, or ``None`` if another one is of no use."""
    return None if isinstance(error, NoLongerPermitted) else RETRY_PAUSE


# It has the name of its function, by which workers find it.
act_on_list: Any = undeclared(  # type: ignore[no-redef]
    act_on_list,
    DEFAULT_TASK_BACKEND_ALIAS,
    takes_context=True,
    max_attempts=MOST_ATTEMPTS,
    backoff=_pause,
    job_metadata=JobMetadata(delivery=AT_LEAST_ONCE, expires=NEVER, timeout=NO_TIMEOUT),
)
