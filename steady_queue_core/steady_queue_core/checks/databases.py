"""Checks of the databases that hold a queue."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from django.apps import AppConfig, apps
from django.core.checks import CheckMessage, Error, Warning, register
from django.core.checks import Tags as DjangoTags
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, InterfaceError, connections, router

from ..errors import DialectConflict, DialectError
from .known_backends import START, TAG, present_databases, workers_on

#: What keeps the queue from starting, and nothing else of the project.
STOPPING = ("steady_queue.E001", "steady_queue.E002")


@register(TAG)
def check_dialects(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """W023: the queue can start: see ``check_start``."""
    return [_as_warning(problem) for problem in _dialect_problems()]


@register(TAG, START, deploy=True)
def check_start(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """E001, E002: each database that holds a queue has exactly one dialect, which serves the queue
    lists of all workers. For ``check --deploy``, and the start of the queue."""
    return _dialect_problems()


def _as_warning(problem: CheckMessage) -> CheckMessage:
    """Return a problem of the queue alone, which is to stop no other command of the project."""
    if problem.id not in STOPPING:
        return problem
    hint = "Until then the queue does not start, and nothing can be enqueued in that database."
    return Warning(problem.msg, hint=hint, id="steady_queue.W023")


def _dialect_problems() -> list[CheckMessage]:
    from ..configuration import ConfigurationError
    from ..dialects import QueueSelector, dialect_for

    problems: list[CheckMessage] = []
    for using in present_databases():
        try:
            dialect = dialect_for(using)
            for worker in workers_on(using):
                dialect.require_exclusion(QueueSelector.of(worker.queues))
        except ConfigurationError:
            continue  # check_configuration reports it.
        except DialectConflict as error:
            problems.append(Error(str(error), id="steady_queue.E002"))
        except DialectError as error:
            problems.append(Error(str(error), id="steady_queue.E001"))
    return problems


@register(TAG)
def check_routers(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """E009: the database routers allow all tables of a queue in its database."""
    problems: list[CheckMessage] = []
    models = list(apps.get_app_config("steady_queue").get_models())
    for using in present_databases():
        kept_out = [
            model._meta.db_table for model in models if not router.allow_migrate_model(using, model)
        ]
        if kept_out:
            problems.append(
                Error(
                    f"The routers in DATABASE_ROUTERS keep tables of the queue out of the database "
                    f"{using!r}, where its jobs are: {', '.join(sorted(kept_out))}.",
                    hint="Put 'steady_queue_core.routers.SteadyQueueRouter' first in "
                    "DATABASE_ROUTERS, or let yours allow the app 'steady_queue' there.",
                    id="steady_queue.E009",
                )
            )
    return problems


@register(TAG, DjangoTags.database)
def check_databases(
    app_configs: Sequence[AppConfig] | None,
    databases: Sequence[str] | None = None,
    **kwargs: Any,
) -> list[CheckMessage]:
    """The dialects' own checks of the servers, for ``check --database``. E008: a server does not
    answer."""
    from ..dialects import dialect_for

    problems: list[CheckMessage] = []
    for using in present_databases():
        if using in (databases or ()):
            try:
                found = dialect_for(using).checks(connections[using])
                problems += map(_as_warning, found)
            except ImproperlyConfigured:
                continue  # check_dialects or check_configuration reports it.
            except (DatabaseError, InterfaceError) as error:
                problems.append(
                    Error(
                        f"Database {using!r} could not be examined: {str(error).strip()}",
                        hint="The queue's processes wait until the server is back.",
                        id="steady_queue.E008",
                    )
                )
    return problems


@register(TAG, DjangoTags.database)
def check_jobs_left_behind(
    app_configs: Sequence[AppConfig] | None,
    databases: Sequence[str] | None = None,
    **kwargs: Any,
) -> list[CheckMessage]:
    """W021: a database that no backend names has no jobs."""
    from ..models.left_behind import has_jobs_left_behind

    known = present_databases()
    problems: list[CheckMessage] = []
    for using in databases or ():
        with suppress(DatabaseError, InterfaceError, ImproperlyConfigured):
            if known and using not in known and has_jobs_left_behind(using):
                problems.append(
                    Warning(
                        f"Jobs wait in the database {using!r}, which no backend in TASKS stores "
                        "jobs in, and no process of the queue has been alive there for ten "
                        "minutes.",
                        hint=f"Add a backend with OPTIONS['database'] = {using!r} until they have "
                        "run, or discard them.",
                        id="steady_queue.W021",
                    )
                )
    return problems


@register(TAG, DjangoTags.database)
def check_recorded_migrations(
    app_configs: Sequence[AppConfig] | None,
    databases: Sequence[str] | None = None,
    **kwargs: Any,
) -> list[CheckMessage]:
    """E012: the recorded migrations are this package's. ``migrate`` runs this check first."""
    from ..models.recorded import misfit_in

    problems: list[CheckMessage] = []
    for using in databases or ():
        with suppress(DatabaseError, InterfaceError, ImproperlyConfigured):
            misfit = misfit_in(using)
            if misfit is not None:
                problems.append(Error(str(misfit), hint=misfit.remedy, id="steady_queue.E012"))
    return problems
