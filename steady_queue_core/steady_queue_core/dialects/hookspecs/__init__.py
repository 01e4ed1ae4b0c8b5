"""The hooks that a dialect plugin implements.

Steady Queue picks one plugin per database and calls the hooks of that plugin only, so an
implementation never has to check which database it was given. It may leave out arguments that it
does not use. ``connection`` belongs to the calling thread and must not be kept.

A plugin is a module that assigns functions to the names of the hooks. This one relies on the
portable building blocks::

    from steady_queue_core.dialects import DialectInfo, hookimpl, portable

    from . import listing

    @hookimpl
    def steady_queue_dialect(connection):
        if connection.vendor == "cockroachdb":
            return DialectInfo(
                name="cockroach", display_name="CockroachDB", api_version=3
            )

    steady_queue_claim = hookimpl(portable.claim)
    steady_queue_list_queues = hookimpl(listing.list_queues)
    ...  # the other required hooks

Import modules into it, not functions: ``hookimpl`` marks the function itself, and a marked function
in the module would be taken for a hook under its own name too.

Every operation that writes is a transaction of its own, or part of the caller's if the connection
is in one.
"""

from __future__ import annotations

# The names of the modules have the order of the contract, and so have the hooks here.
from .connections import *
from .jobs import *
from .limits import *
from .markers import *
from .rows import *
from .server import *
