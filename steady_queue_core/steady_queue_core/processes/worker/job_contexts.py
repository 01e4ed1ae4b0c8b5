"""The context variables of each job: what its worker began with, and nothing of other jobs."""

from __future__ import annotations

import decimal
from contextvars import Context, copy_context

from django.conf import settings
from django.urls import set_script_prefix

#: The name of the variables in which Django keeps what each thread has of its own: language, time
#: zone, connections of caches. By the version of asgiref, copies of a context share their values.
OF_THREADS = "asgiref.local"


class JobContexts:
    """Makes the contexts of jobs from the one in which it was made itself."""

    def __init__(self) -> None:
        self._base = Context()
        #: What the process has set for its decimals: an object that copies of a context share.
        self._decimals: decimal.Context | None = None
        for variable, value in copy_context().items():
            if variable.name == "decimal_context":
                self._decimals = value.copy()
            elif variable.name != OF_THREADS:
                self._base.run(variable.set, value)

    def new(self) -> Context:
        """Return a context for one job. To be called in the thread that runs it."""
        context = self._base.copy()
        if self._decimals is not None:
            context.run(decimal.setcontext, self._decimals.copy())
        if settings.FORCE_SCRIPT_NAME is not None:  # As django.setup() does, for its thread alone.
            context.run(set_script_prefix, settings.FORCE_SCRIPT_NAME)
        return context
