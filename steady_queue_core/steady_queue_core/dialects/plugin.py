"""The plugin that was picked for a database: its hooks as methods.

Their signatures are those of ``hookspecs``, and so is what they promise. Nothing is added here, but
that a hook which a dialect has left out may return what another function returns.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from . import hookspecs
from .records import DialectInfo

P = ParamSpec("P")
R = TypeVar("R")


def hook(
    specification: Callable[P, R], otherwise: Callable[..., Any] | None = None
) -> Callable[Concatenate[Any, P], R]:
    """Return the method that calls a hook, or ``otherwise`` if the dialect has left it out: with
    nothing else to call, wrappers of other plugins run all the same."""
    name = specification.__name__
    parameters = tuple(inspect.signature(specification).parameters)

    @wraps(specification)
    def call(plugin: Plugin, *given: Any, **named: Any) -> Any:
        implementation = plugin.hooks[name]
        if otherwise is not None and name not in plugin.implemented:
            implementation = otherwise
        return implementation(**dict(zip(parameters, given, strict=False)), **named)

    return cast("Callable[Concatenate[Any, P], R]", call)


class Plugin:
    """What a dialect implements, each hook by its name without the prefix."""

    def __init__(
        self, info: DialectInfo, hooks: Mapping[str, Callable[..., Any]], implemented: set[str]
    ) -> None:
        self.info = info
        #: What calls them, by their full names: only with keywords.
        self.hooks = hooks
        #: The full names of those that the dialect has not left out.
        self.implemented = implemented

    limit_silence = hook(hookspecs.steady_queue_limit_silence)
    set_up = hook(hookspecs.steady_queue_prepare)
    share = hook(hookspecs.steady_queue_share)
    transaction = hook(hookspecs.steady_queue_transaction)
    lock_rows = hook(hookspecs.steady_queue_lock_rows)
    sees_past = hook(hookspecs.steady_queue_sees_past)
    is_contention = hook(hookspecs.steady_queue_is_contention)
    is_lost_connection = hook(hookspecs.steady_queue_is_lost_connection)
    was_replaced = hook(hookspecs.steady_queue_was_replaced)
    store_jobs = hook(hookspecs.steady_queue_enqueue)
    claim_ready = hook(hookspecs.steady_queue_claim)
    end_held = hook(hookspecs.steady_queue_settle)
    exchange = hook(hookspecs.steady_queue_settle_and_claim)
    exchange_members = hook(hookspecs.steady_queue_settle_members)
    claim_blocked = hook(hookspecs.steady_queue_claim_followers)
    save_checkpoint = hook(hookspecs.steady_queue_save_checkpoint)
    save_step = hook(hookspecs.steady_queue_save_step)
    move_due = hook(hookspecs.steady_queue_dispatch)
    take_turn = hook(hookspecs.steady_queue_take_turn)
    lock_turns = hook(hookspecs.steady_queue_lock_turns)
    save_turns = hook(hookspecs.steady_queue_save_turns)
    admit_blocked = hook(hookspecs.steady_queue_admit)
    queues_with = hook(hookspecs.steady_queue_list_queues)
    count_ready = hook(hookspecs.steady_queue_count_ready)
    insert_if_absent = hook(hookspecs.steady_queue_insert_if_absent)
    upsert = hook(hookspecs.steady_queue_upsert)
    now = hook(hookspecs.steady_queue_now)
    exact_collation = hook(hookspecs.steady_queue_exact_collation)
    table_options = hook(hookspecs.steady_queue_tune_tables)
    wakeup = hook(hookspecs.steady_queue_wakeup)
    ring = hook(hookspecs.steady_queue_ring)
    findings = hook(hookspecs.steady_queue_checks)
    observations = hook(hookspecs.steady_queue_examine)

    @property
    def limits_silence(self) -> bool:
        """Whether connections can be made to fail when the server does not answer."""
        return self.implements("limit_silence")

    @property
    def claims_followers(self) -> bool:
        """Whether ``claim_followers`` ever claims anything."""
        return self.implements("claim_followers")

    @property
    def takes_turns(self) -> bool:
        """Whether ``take_turn`` does anything."""
        return self.implements("take_turn")

    @property
    def rings(self) -> bool:
        """Whether ``ring`` does anything."""
        return self.implements("ring")

    def implements(self, name: str) -> bool:
        """Return whether the dialect has an optional hook, named without the prefix."""
        return f"steady_queue_{name}" in self.implemented
