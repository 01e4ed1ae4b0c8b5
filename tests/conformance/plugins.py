"""Registries of plugins that are made here, instead of being installed."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any

from steady_queue_core.dialects import API_VERSION, DialectInfo, hookimpl
from steady_queue_core.dialects.registry import DialectRegistry


@dataclass(frozen=True)
class Plugin:
    """Stands for an entry point: its name, and what it loads."""

    name: str
    loaded: object
    value: str = "tests.conformance.plugins"

    def load(self) -> object:
        return self.loaded


def plugin(name: str, hooks: dict[str, Any]) -> Plugin:
    """Return a plugin with ``hooks``, functions by the names of their specifications."""
    module = ModuleType(name)
    for hook, function in hooks.items():
        setattr(module, hook, hookimpl(function))
    return Plugin(name, module)


def registry_of(*plugins: Plugin) -> DialectRegistry:
    entry_points: Any = plugins
    return DialectRegistry(entry_points)


def hooks_of(module: ModuleType) -> dict[str, Any]:
    """Return the hooks of a plugin module, by name."""
    return {name: hook for name, hook in vars(module).items() if name.startswith("steady_queue_")}


def selecting(name: str, vendor: str = "sqlite", **facts: Any) -> Any:
    """Return a selection hook that answers for ``vendor`` to ``name``."""

    def steady_queue_dialect(connection: Any) -> DialectInfo | None:
        if connection.vendor != vendor:
            return None
        known = {"name": name, "display_name": "test", "api_version": API_VERSION}
        return DialectInfo(**(known | facts))

    return steady_queue_dialect
