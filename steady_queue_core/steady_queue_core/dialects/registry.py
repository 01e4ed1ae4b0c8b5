"""Loads the dialect plugins and picks one for each database.

Plugins are loaded once, on first use, from the entry-point group ``steady_queue``. Every failure
has an error that says what is wrong, with which plugin, and how to mend it. There is no silent
fallback: a wrong guess about locking loses jobs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from threading import RLock

import pluggy
from django.conf import settings
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from ..errors import DialectConflict, DialectInvalid, DialectNotFound
from . import hookspecs
from .dialect import Dialect
from .portable import own
from .records import API_VERSION, DialectInfo

ENTRY_POINT_GROUP = "steady_queue"

#: The distributions to suggest for known vendors.
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
        # Reentrant: a plugin that queries its server opens a connection, which needs its dialect.
        self._lock = RLock()
        for plugin in plugins:
            self._load(plugin)
        self._refuse_unknown_hooks()
        self._dialects = self._find_dialects()

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
        return sorted(self._dialects)

    def _load(self, entry_point: EntryPoint) -> None:
        # One at a time: pluggy's own loader raises an ImportError without the name of the plugin.
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

    def _find_dialects(self) -> dict[str, object]:
        """Return the plugins with a selection hook. The others may only wrap hooks."""
        selection = self._manager.hook.steady_queue_dialect
        dialects = {hook.plugin_name: hook.plugin for hook in _answering(selection)}
        for name, plugin in self._manager.list_name_plugin():
            if name in dialects:
                continue
            for caller in self._manager.get_hookcallers(plugin) or []:
                if any(hook.plugin is plugin for hook in _answering(caller)):
                    raise DialectInvalid(
                        f"Dialect plugin {name!r} implements {caller.name} but not "
                        "steady_queue_dialect, so it would answer for the databases of others. "
                        "Implement that hook too, or make the implementation a wrapper."
                    )
        return dialects

    def _pick(self, connection: BaseDatabaseWrapper) -> Dialect:
        pinned = _pinned_name(connection.alias)
        # Only the pinned plugin is called: another one may refuse this server.
        answers = self._answers(connection, self._dialects if pinned is None else [pinned])
        if pinned is not None and not answers:
            raise DialectNotFound(
                f"STEADY_QUEUE['dialects'] pins {pinned!r} for database "
                f"{connection.alias!r}, but no installed plugin of that name drives it "
                f"(vendor {connection.vendor!r}). Installed dialects: {self._listed()}."
            )
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

    def _answers(
        self, connection: BaseDatabaseWrapper, candidates: Iterable[str]
    ) -> dict[str, DialectInfo]:
        answers: dict[str, DialectInfo] = {}
        for name in candidates:
            if name not in self._dialects:
                continue
            found = self._hooks_of(name)["steady_queue_dialect"](connection=connection)
            if not found:
                continue
            answer = found[0]
            if not isinstance(answer, DialectInfo):
                raise DialectInvalid(
                    f"Dialect plugin {name!r} answers steady_queue_dialect with {answer!r}. "
                    "Return a DialectInfo, or None for a database that it does not drive."
                )
            if answer.name != name:
                raise DialectInvalid(
                    f"Dialect plugin {name!r} answers to the name {answer.name!r}. Give "
                    "its DialectInfo the name of its entry point."
                )
            answers[name] = answer
        return answers

    def _build(self, name: str, info: DialectInfo) -> Dialect:
        if info.api_version != API_VERSION:
            raise DialectInvalid(
                f"Dialect plugin {name!r} was written for version {info.api_version} of the "
                f"dialect contract; this Steady Queue has version {API_VERSION}. Install "
                "versions of both that match. If the plugin is yours: docs/writing-a-dialect.md "
                "says what has changed, after which its DialectInfo states "
                f"api_version={API_VERSION}."
            )
        plugin = self._dialects[name]
        callers = self._manager.get_hookcallers(plugin) or []
        implemented = {
            caller.name
            for caller in callers
            if any(hook.plugin is plugin for hook in _answering(caller))
        }
        required = {hook for hook in vars(hookspecs) if hook.startswith("steady_queue_")}
        missing = sorted(required - hookspecs.OPTIONAL - implemented)
        if missing:
            raise DialectInvalid(
                f"Dialect plugin {name!r} is incomplete: it lacks {', '.join(missing)}. Implement "
                "them, or delegate to steady_queue_core.dialects.portable."
            )
        return Dialect(info, self._hooks_of(name), implemented)

    def _hooks_of(self, name: str) -> dict[str, pluggy.HookCaller]:
        # Of the dialects only this one is called; plugins that only wrap hooks (tracing) still run.
        others = [plugin for other, plugin in self._dialects.items() if other != name]
        return {
            hook: self._manager.subset_hook_caller(hook, others)
            for hook in vars(hookspecs)
            if hook.startswith("steady_queue_")
        }

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


def _answering(caller: pluggy.HookCaller) -> Iterator[pluggy.HookImpl]:
    """Yield the implementations of a hook, without its wrappers."""
    for implementation in caller.get_hookimpls():
        if not (implementation.wrapper or implementation.hookwrapper):
            yield implementation


@cache
def _installed() -> DialectRegistry:
    return DialectRegistry(entry_points(group=ENTRY_POINT_GROUP))


_overrides: list[DialectRegistry] = []


def registry() -> DialectRegistry:
    """Return this process's registry, loading the installed plugins on the first call."""
    return _overrides[-1] if _overrides else _installed()


@contextmanager
def override(replacement: DialectRegistry) -> Iterator[None]:
    """Use another registry in all threads of this process, in tests of plugins."""
    _overrides.append(replacement)
    try:
        yield
    finally:
        _overrides.remove(replacement)


def dialect_for(using: str) -> Dialect:
    """Return the dialect of database alias ``using``; see ``DialectRegistry.dialect_for``."""
    return registry().dialect_for(using)


own.pick.append(dialect_for)
