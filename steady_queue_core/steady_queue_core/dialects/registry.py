"""Finds the dialect plugins and picks one for each database.

Plugins are loaded once, on first use, from the entry-point group ``steady_queue``. Every way in
which that can go wrong has an error that says what, which and how to mend it; there is no silent
fallback, because a guess about locking loses jobs.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from threading import Lock

import pluggy
from django.conf import settings
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from ..errors import DialectConflict, DialectInvalid, DialectNotFound
from . import hookspecs
from .dialect import Dialect
from .records import API_VERSION, DialectInfo

ENTRY_POINT_GROUP = "steady_queue"

#: The distributions to suggest for the databases we know.
KNOWN_DISTRIBUTIONS = {
    "sqlite": "steady-queue-sqlite",
    "postgresql": "steady-queue-postgres",
    "mysql": "steady-queue-mysql",
}


class DialectRegistry:
    """The loaded plugins, and the dialect that was picked for each database alias."""

    def __init__(self, plugins: Iterable[EntryPoint]) -> None:
        self._manager = pluggy.PluginManager(hookspecs.PROJECT_NAME)
        self._manager.add_hookspecs(hookspecs)
        self._picked: dict[str, Dialect] = {}
        self._lock = Lock()
        for plugin in plugins:
            self._load(plugin)
        self._refuse_unknown_hooks()

    def dialect_for(self, using: str) -> Dialect:
        """Return the dialect of database ``using``.

        Raises ``DialectNotFound``, ``DialectConflict``, ``DialectUnsupported`` or
        ``DialectInvalid``.
        """
        dialect = self._picked.get(using)
        if dialect is None:
            with self._lock:
                dialect = self._picked.get(using) or self._pick(connections[using])
                self._picked[using] = dialect
        return dialect

    def names(self) -> list[str]:
        """Return the names of the installed dialects, sorted."""
        return sorted(name for name, plugin in self._manager.list_name_plugin() if plugin)

    def _load(self, entry_point: EntryPoint) -> None:
        # One name at a time: pluggy's own loader lets an ImportError escape without a name.
        try:
            plugin = entry_point.load()
            self._manager.register(plugin, name=entry_point.name)
        except pluggy.PluginValidationError as error:
            raise DialectInvalid(
                f"Dialect plugin {entry_point.name!r} ({entry_point.value}) does not match the "
                f"hook specifications: {error} Correct the hook in the plugin, or uninstall it."
            ) from error
        except Exception as error:
            raise DialectInvalid(
                f"Dialect plugin {entry_point.name!r} ({entry_point.value}) could not be loaded: "
                f"{type(error).__name__}: {error}. Repair or uninstall the distribution "
                "that provides it."
            ) from error

    def _refuse_unknown_hooks(self) -> None:
        try:
            self._manager.check_pending()
        except pluggy.PluginValidationError as error:
            raise DialectInvalid(
                f"Dialect plugin {self._manager.get_name(error.plugin)!r} has a hook that Steady "
                f"Queue does not know: {error}. Check its spelling against "
                "steady_queue_core.dialects.hookspecs."
            ) from error

    def _pick(self, connection: BaseDatabaseWrapper) -> Dialect:
        answers = self._answers(connection)
        pinned = _pinned_name(connection.alias)
        if pinned is not None:
            if pinned not in answers:
                raise DialectNotFound(
                    f"STEADY_QUEUE['dialects'] pins {pinned!r} for database "
                    f"{connection.alias!r}, but no installed plugin of that name drives it "
                    f"(vendor {connection.vendor!r}). Installed dialects: {self._listed()}."
                )
            answers = {pinned: answers[pinned]}
        if not answers:
            raise DialectNotFound(self._not_found_text(connection))
        if len(answers) > 1:
            first, *_ = sorted(answers)
            raise DialectConflict(
                f"{' and '.join(sorted(answers))} both support database {connection.alias!r} "
                f"(vendor {connection.vendor!r}). Uninstall one, or choose one: "
                f"STEADY_QUEUE = {{'dialects': {{{connection.alias!r}: {first!r}}}}}."
            )
        [(name, info)] = answers.items()
        return self._build(name, info)

    def _answers(self, connection: BaseDatabaseWrapper) -> dict[str, DialectInfo]:
        answers: dict[str, DialectInfo] = {}
        for implementation in self._manager.hook.steady_queue_dialect.get_hookimpls():
            if implementation.wrapper or implementation.hookwrapper:
                continue
            plugin_name = implementation.plugin_name
            info = self._hooks_of(plugin_name).steady_queue_dialect(connection=connection)[0:1]
            if not info:
                continue
            [answer] = info
            if answer.name != plugin_name:
                raise DialectInvalid(
                    f"Dialect plugin {plugin_name!r} answers to the name {answer.name!r}. Give "
                    "its DialectInfo the name of its entry point."
                )
            answers[plugin_name] = answer
        return answers

    def _build(self, name: str, info: DialectInfo) -> Dialect:
        if info.api_version != API_VERSION:
            raise DialectInvalid(
                f"Dialect plugin {name!r} was written for version {info.api_version} of the "
                f"dialect contract; this Steady Queue has version {API_VERSION}. Install "
                "versions of both that match."
            )
        callers = self._manager.get_hookcallers(self._manager.get_plugin(name)) or []
        implemented = {caller.name for caller in callers}
        required = {hook for hook in vars(hookspecs) if hook.startswith("steady_queue_")}
        missing = sorted(required - hookspecs.OPTIONAL - implemented)
        if missing:
            raise DialectInvalid(
                f"Dialect plugin {name!r} is incomplete: it lacks {', '.join(missing)}. Implement "
                "them, or delegate to steady_queue_core.dialects.portable."
            )
        return Dialect(info, self._hooks_of(name), implemented)

    def _hooks_of(self, name: str) -> pluggy.HookRelay:
        # Only the picked dialect answers; plugins that merely wrap hooks (tracing) still run.
        others = [
            plugin
            for other, plugin in self._manager.list_name_plugin()
            if plugin is not None and other != name and hasattr(plugin, "steady_queue_dialect")
        ]
        relay = pluggy.HookRelay()
        for hook in vars(hookspecs):
            if hook.startswith("steady_queue_"):
                setattr(relay, hook, self._manager.subset_hook_caller(hook, others))
        return relay

    def _listed(self) -> str:
        return ", ".join(self.names()) or "none"

    def _not_found_text(self, connection: BaseDatabaseWrapper) -> str:
        text = (
            f"No Steady Queue dialect supports database {connection.alias!r} "
            f"(vendor {connection.vendor!r}). Installed dialects: {self._listed()}."
        )
        distribution = KNOWN_DISTRIBUTIONS.get(connection.vendor)
        if distribution:
            text += f" Install it with: pip install {distribution}"
        return text


def _pinned_name(using: str) -> str | None:
    configured = getattr(settings, "STEADY_QUEUE", None)
    if configured is None:
        return None
    from ..configuration import Configuration

    return Configuration.load().dialects.get(using)


@cache
def registry() -> DialectRegistry:
    """Return this process's registry, loading the installed plugins on the first call."""
    return DialectRegistry(entry_points(group=ENTRY_POINT_GROUP))


def dialect_for(using: str) -> Dialect:
    """Return the dialect of database alias ``using``; see ``DialectRegistry.dialect_for``."""
    return registry().dialect_for(using)
