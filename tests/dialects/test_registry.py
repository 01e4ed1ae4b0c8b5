"""Picking a dialect for a database, and every way in which that can go wrong."""

from __future__ import annotations

import inspect
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from django.db import connections

from steady_queue_core.dialects import (
    DialectConflict,
    DialectInfo,
    DialectInvalid,
    DialectNotFound,
    DialectUnsupported,
    dialect_for,
    hookimpl,
    hookspecs,
)
from steady_queue_core.dialects.registry import DialectRegistry, override, registry
from tests.conformance.plugins import Plugin, plugin, registry_of, selecting
from tests.conformance.portable_dialect import HOOKS

ALL_HOOKS = sorted(name for name in vars(hookspecs) if name.startswith("steady_queue_"))


def complete(name: str, **replaced: Any) -> Plugin:
    """Return a plugin that has all it needs, with hooks replaced, named without prefix."""
    hooks = HOOKS | {"steady_queue_dialect": selecting(name)}
    return plugin(name, hooks | {f"steady_queue_{key}": hook for key, hook in replaced.items()})


def without(name: str, *hooks: str) -> Plugin:
    """Return a plugin that lacks some of the hooks."""
    kept = {hook: function for hook, function in HOOKS.items() if hook not in hooks}
    return plugin(name, kept | {"steady_queue_dialect": selecting(name)})


def unsupported(connection: Any) -> None:
    raise DialectUnsupported("Server 1.0 is too old for Steady Queue; it needs 2.0 or newer.")


def refusal(error: type[Exception], *plugins: Plugin) -> str:
    """Return the message with which picking a dialect for ``default`` fails."""
    with pytest.raises(error) as caught:
        registry_of(*plugins).dialect_for("default")
    return str(caught.value)


# --- picking ---------------------------------------------------------------------------------


def test_the_one_plugin_that_drives_the_database_is_picked() -> None:
    installed = registry_of(complete("fast"), complete("other", dialect=selecting("other", "odd")))
    assert installed.dialect_for("default").info.name == "fast"
    assert installed.names() == ["fast", "other"]


def test_a_database_is_picked_for_once() -> None:
    asked = []

    def counted(connection: Any) -> Any:
        asked.append(connection.alias)
        return selecting("fast")(connection)

    installed = registry_of(complete("fast", dialect=counted))
    assert installed.dialect_for("default") is installed.dialect_for("default")
    assert asked == ["default"]


def test_an_override_holds_for_its_block() -> None:
    before = dialect_for("default")
    with override(registry_of(complete("outer"))):
        with override(registry_of(complete("inner"))):
            assert dialect_for("default").info.name == "inner"
            assert registry().names() == ["inner"]
        assert dialect_for("default").info.name == "outer"
    assert dialect_for("default") is before


def test_a_pinned_plugin_is_picked_among_several(settings: Any) -> None:
    settings.STEADY_QUEUE = {"dialects": {"default": "fast"}}
    installed = registry_of(complete("slow"), complete("fast"))
    assert installed.dialect_for("default").info.name == "fast"


def test_a_pin_keeps_other_plugins_from_being_asked(settings: Any) -> None:
    settings.STEADY_QUEUE = {"dialects": {"default": "fast"}}
    installed = registry_of(complete("old", dialect=unsupported), complete("fast"))
    assert installed.dialect_for("default").info.name == "fast"


def test_a_pin_is_of_one_database(settings: Any) -> None:
    settings.STEADY_QUEUE = {"dialects": {"elsewhere": "fast"}}
    installed = registry_of(complete("slow"), complete("fast"))
    with pytest.raises(DialectConflict):
        installed.dialect_for("default")


@pytest.mark.django_db(transaction=True)
def test_a_plugin_may_ask_its_server_while_it_is_picked() -> None:
    """Though it should not: opening the connection asks for the dialect again."""

    def asking(connection: Any) -> Any:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        return selecting("fast")(connection)

    with override(registry_of(complete("fast", dialect=asking))):
        connections["default"].close()
        assert dialect_for("default").info.name == "fast"


# --- refusals --------------------------------------------------------------------------------


def test_no_dialect_names_the_package_to_install() -> None:
    assert refusal(DialectNotFound) == (
        "No Steady Queue dialect supports database 'default' (vendor 'sqlite'). Installed "
        "dialects: none. Install it with: pip install steady-queue-sqlite"
    )


def test_no_dialect_for_a_foreign_database_names_those_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections["default"], "vendor", "oracle")
    assert refusal(DialectNotFound, complete("sqlite"), complete("fast")) == (
        "No Steady Queue dialect supports database 'default' (vendor 'oracle'). Installed "
        "dialects: fast, sqlite."
    )


def test_two_dialects_for_a_database_are_a_conflict() -> None:
    assert refusal(DialectConflict, complete("sqlite"), complete("fastlite")) == (
        "fastlite and sqlite both support database 'default' (vendor 'sqlite'). Uninstall one, or "
        "choose one: STEADY_QUEUE = {'dialects': {'default': 'fastlite'}}."
    )


@pytest.mark.parametrize(
    ("pinned", "listed"),
    [
        pytest.param([complete("sqlite")], "sqlite", id="not installed"),
        pytest.param([complete("fast", dialect=selecting("fast", "odd"))], "fast", id="declines"),
    ],
)
def test_a_pinned_plugin_must_be_installed_and_drive_the_database(
    settings: Any, pinned: list[Plugin], listed: str
) -> None:
    settings.STEADY_QUEUE = {"dialects": {"default": "fast"}}
    assert refusal(DialectNotFound, *pinned) == (
        "STEADY_QUEUE['dialects'] pins 'fast' for database 'default', but no installed plugin of "
        f"that name drives it (vendor 'sqlite'). Installed dialects: {listed}."
    )


def test_a_server_too_old_is_refused_in_the_plugins_own_words() -> None:
    message = refusal(DialectUnsupported, complete("fast", dialect=unsupported))
    assert message == "Server 1.0 is too old for Steady Queue; it needs 2.0 or newer."


def test_a_plugin_that_cannot_be_imported_is_named() -> None:
    broken = EntryPoint("fast", "no_such_module.plugin", "steady_queue")
    with pytest.raises(DialectInvalid) as caught:
        DialectRegistry([broken])
    assert str(caught.value) == (
        "Dialect plugin 'fast' (no_such_module.plugin) could not be loaded: ModuleNotFoundError: "
        "No module named 'no_such_module'. Repair or uninstall the distribution that provides it."
    )


def test_two_plugins_of_one_name_are_refused() -> None:
    assert refusal(DialectInvalid, complete("fast"), complete("fast")).startswith(
        "Dialect plugin 'fast' (tests.conformance.plugins) could not be loaded: ValueError: "
        "Plugin name already registered: fast="
    )


def test_a_misspelt_hook_is_named() -> None:
    misspelt = complete("fast", clam=HOOKS["steady_queue_claim"])
    assert refusal(DialectInvalid, misspelt) == (
        "Dialect plugin 'fast' has a hook that Steady Queue does not know: unknown hook "
        f"'steady_queue_clam' in plugin {misspelt.loaded!r}. Check its spelling against "
        "steady_queue_core.dialects.hookspecs."
    )


def test_a_wrong_argument_of_a_hook_is_named() -> None:
    def claim(connection: Any, worker: Any) -> list[Any]:
        return []

    claim.__name__ = "steady_queue_claim"
    wrong = complete("fast", claim=claim)
    message = refusal(DialectInvalid, wrong)
    assert message == (
        "Dialect plugin 'fast' (tests.conformance.plugins) does not match the hook "
        "specifications: Plugin 'fast' for hook 'steady_queue_claim'\n"
        "hookimpl definition: steady_queue_claim(connection: 'Any', worker: 'Any') -> 'list[Any]'\n"
        "Argument(s) {'worker'} are declared in the hookimpl but can not be found in the hookspec "
        "Correct the hook in the plugin, or uninstall it."
    )


def test_hooks_that_are_lacking_are_named() -> None:
    lacking = without("fast", "steady_queue_settle", "steady_queue_claim")
    assert refusal(DialectInvalid, lacking) == (
        "Dialect plugin 'fast' is incomplete: it lacks steady_queue_claim, steady_queue_settle. "
        "Implement them, or delegate to steady_queue_core.dialects.portable."
    )


def test_a_wrapped_hook_is_still_lacking() -> None:
    lacking = without("fast", "steady_queue_claim")
    tracing_of("steady_queue_claim", [], onto=lacking.loaded)
    assert refusal(DialectInvalid, lacking) == (
        "Dialect plugin 'fast' is incomplete: it lacks steady_queue_claim. "
        "Implement them, or delegate to steady_queue_core.dialects.portable."
    )


def test_hooks_without_a_selection_are_refused() -> None:
    """They would answer for the databases of all dialects."""
    stray = plugin("stray", {"steady_queue_claim": HOOKS["steady_queue_claim"]})
    assert refusal(DialectInvalid, complete("fast"), stray) == (
        "Dialect plugin 'stray' implements steady_queue_claim but not steady_queue_dialect, so it "
        "would answer for the databases of others. Implement that hook too, or make the "
        "implementation a wrapper."
    )


def test_a_plugin_of_another_contract_is_refused_with_both_versions() -> None:
    newer = complete("fast", dialect=selecting("fast", api_version=7))
    assert refusal(DialectInvalid, newer) == (
        "Dialect plugin 'fast' was written for version 7 of the dialect contract; this Steady "
        "Queue has version 3. Install versions of both that match. If the plugin is yours: "
        "docs/writing-a-dialect.md says what has changed, after which its DialectInfo states "
        "api_version=3."
    )


def test_a_plugin_that_states_no_version_was_written_for_the_first_one() -> None:
    """It stores no metadata of jobs."""

    def older(connection: Any) -> DialectInfo:
        return DialectInfo(name="fast", display_name="test")

    told = refusal(DialectInvalid, complete("fast", dialect=older))
    assert told.startswith("Dialect plugin 'fast' was written for version 1 of the dialect")


def test_a_plugin_must_answer_to_its_own_name() -> None:
    assert refusal(DialectInvalid, complete("fast", dialect=selecting("sqlite"))) == (
        "Dialect plugin 'fast' answers to the name 'sqlite'. Give its DialectInfo the name of its "
        "entry point."
    )


def test_a_plugin_must_answer_with_a_dialect_info() -> None:
    assert refusal(DialectInvalid, complete("fast", dialect=lambda connection: "fast")) == (
        "Dialect plugin 'fast' answers steady_queue_dialect with 'fast'. Return a DialectInfo, or "
        "None for a database that it does not drive."
    )


def test_a_refusal_is_repeated_each_time() -> None:
    installed = registry_of()
    for _ in range(2):
        with pytest.raises(DialectNotFound):
            installed.dialect_for("default")


# --- wrappers --------------------------------------------------------------------------------


def tracing_of(name: str, seen: list[str], onto: Any = None) -> Any:
    """Add a wrapper of hook ``name`` that notes its calls; return the plugin module."""
    module = ModuleType("tracing") if onto is None else onto
    [*arguments] = inspect.signature(vars(hookspecs)[name]).parameters
    # A hook's arguments are those of its specification, by name.
    source = f"def wrapper({', '.join(arguments)}):\n    seen.append(name)\n    return (yield)\n"
    namespace: dict[str, Any] = {"seen": seen, "name": name}
    exec(source, namespace)
    setattr(module, name, hookimpl(wrapper=True)(namespace["wrapper"]))
    return module


@pytest.mark.parametrize("traced", [["steady_queue_list_queues"], ALL_HOOKS], ids=["one", "all"])
def test_a_plugin_that_only_wraps_hooks_fires_around_the_picked_dialect(traced: list[str]) -> None:
    """Also when it wraps the selection hook; it is no dialect for that."""
    seen: list[str] = []
    tracing = ModuleType("tracing")
    for name in traced:
        tracing_of(name, seen, onto=tracing)
    fast = complete("fast", list_queues=lambda connection, prefix: ["from fast", prefix])
    slow = complete("slow", dialect=selecting("slow", "odd"), list_queues=lambda connection: [])
    installed = registry_of(Plugin("tracing", tracing), fast, slow)
    dialect = installed.dialect_for("default")
    assert installed.names() == ["fast", "slow"]
    del seen[:]
    assert dialect.list_queues(connections["default"], "a") == ["from fast", "a"]
    assert seen == ["steady_queue_list_queues"]


def test_hooks_may_take_fewer_arguments_than_their_specification() -> None:
    brief = complete("fast", list_queues=lambda connection: ["default"])
    assert registry_of(brief).dialect_for("default").list_queues(connections["default"], "a")


# --- specifications --------------------------------------------------------------------------


@pytest.mark.parametrize("hook", ALL_HOOKS)
def test_every_hook_says_what_it_promises(hook: str) -> None:
    text = inspect.getdoc(vars(hookspecs)[hook])
    assert text
    assert text.splitlines()[0].endswith((".", ":")) or len(text.splitlines()) > 1
    if hook in hookspecs.OPTIONAL:
        assert "Optional" in text


def test_optional_hooks_exist() -> None:
    assert set(hookspecs.OPTIONAL) <= set(ALL_HOOKS)


def test_every_hook_is_documented(workspace: Path) -> None:
    """With its name, and the docs name no hook that there is not."""
    page = workspace / "docs" / "writing-a-dialect.md"
    if not page.exists():
        pytest.skip("docs/writing-a-dialect.md is not written yet")
    text = page.read_text()
    assert [hook for hook in ALL_HOOKS if hook not in text] == []
