"""What a backend is set up with: its ``OPTIONS``, and what is made of them."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS, connections, router
from django.db.models import Model

from .arguments import PayloadLimits
from .backend_options import BackendOptions, ErrorReporter
from .compat import BaseTaskBackend
from .features.declared import DEFAULTED
from .middleware import MiddlewareChain, with_installed
from .payloads import PayloadCodec

APP = "steady_queue_core"


class BackendSettings(BaseTaskBackend):
    """A backend with ``OPTIONS``, each of which is read once."""

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        self.alias = alias

    @cached_property
    def settings(self) -> BackendOptions:
        """The parsed ``OPTIONS``; raises ``ConfigurationError``."""
        return BackendOptions.parse(self.alias, self.options)

    @cached_property
    def payload_limits(self) -> PayloadLimits:
        """The size limits of arguments and results."""
        return PayloadLimits(
            max_bytes=self.settings.max_payload_bytes, max_depth=self.settings.max_payload_depth
        )

    @cached_property
    def payload_codec(self) -> PayloadCodec | None:
        """What seals arguments and results, and opens them; ``None`` without an option for it."""
        options = self.settings.payload
        return None if options is None else PayloadCodec(options, self.payload_limits)

    @property
    def middleware(self) -> MiddlewareChain | None:
        """What is around enqueues and executions; raises ``ConfigurationError``."""
        return with_installed(self._own_middleware)

    @cached_property
    def _own_middleware(self) -> MiddlewareChain | None:
        return self.settings.load_middleware()

    @cached_property
    def error_reporter(self) -> ErrorReporter | None:
        """What is told of failed jobs; raises ``ConfigurationError``."""
        return self.settings.load_error_reporter()

    @cached_property
    def job_defaults(self) -> dict[str, Any]:
        """What jobs keep that do not say it themselves."""
        found = {option.name: getattr(self.settings, option.name) for option in DEFAULTED}
        return {name: value for name, value in found.items() if value is not None}

    @property
    def database(self) -> str:
        """Alias of the database that holds the jobs."""
        return self.settings.database or router.db_for_write(self._model_of_jobs)

    @cached_property
    def _model_of_jobs(self) -> type[Model]:
        if not apps.is_installed(APP):
            raise ImproperlyConfigured(
                f"Add {APP!r} to INSTALLED_APPS: TASKS[{self.alias!r}] needs its tables."
            )
        from .models import Job

        return Job

    @property
    def caller_database(self) -> str:
        """Alias of the transaction that ``enqueue_on_commit`` waits for: one that is open."""
        opened = [c.alias for c in connections.all(initialized_only=True) if c.in_atomic_block]
        preferred = [DEFAULT_DB_ALIAS, self.database]
        return next((alias for alias in [*preferred, *opened] if alias in opened), self.database)

    def _written(self, option: str) -> object:
        """Return an option as it is written in ``OPTIONS``: wrong ones are for the system checks to
        report, and not for the first task that is declared."""
        return self.options.get(option) if isinstance(self.options, dict) else None
