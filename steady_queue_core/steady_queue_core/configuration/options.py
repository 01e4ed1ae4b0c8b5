"""``Configuration.Options``: the whole configuration, as written and as resolved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, fields
from datetime import timedelta
from pathlib import Path

from .backend import Backend, combined, read_backends, require_lifetimes
from .module_settings import module_reader
from .option_readers import (
    LIFETIMES,
    read_address,
    read_dialects,
    read_drain_timeout,
    read_lifetimes,
    read_mode,
    read_path,
    read_pattern,
    read_port,
    read_scheduler,
    read_sections,
    read_task_modules,
    read_token,
)
from .processes import Dispatcher, Scheduler, Worker
from .reader import Reader
from .section import Section

SETTING = "STEADY_QUEUE"

#: Names of arguments that may be secret, in addition to those that Django hides on error pages.
HIDDEN_ARGUMENTS = (
    r"pwd|credential|private|cookie|session|bearer|card_?num"
    r"|(?<![a-z])(card|cvc|cvv|dsn|iban|jwt|mfa|otp|pan|pin|ssn|tan|totp)s?(?![a-z])"
)


@dataclass(frozen=True, kw_only=True, init=False)
class Options(Section):
    """What the supervisor starts, and how, as written in the settings; None: not given."""

    workers: tuple[Worker, ...] | None
    """None: one worker with the defaults. An empty list: no worker."""
    dispatchers: tuple[Dispatcher, ...] | None
    """None: one dispatcher with the defaults. An empty list: no dispatcher."""
    scheduler: Scheduler | None
    """None: the defaults. The scheduler only starts if there are recurring tasks."""
    process_heartbeat_interval: timedelta | None
    """Time between two heartbeats of a process."""
    process_alive_threshold: timedelta | None
    """Silence after which a process counts as dead; more than two heartbeats."""
    shutdown_timeout: timedelta | None
    """Time that running tasks get between TERM and QUIT."""
    supervisor_pidfile: Path | None
    """Lock file that prevents a second supervisor on this host; None: no file."""
    silence_polling: bool | None
    """Whether the SQL log omits the statements of the queue's processes."""
    supervisor_mode: str | None
    """``fork`` or ``async``: run processes or threads; None: processes if the system can fork."""
    state_directory: Path | None
    """Folder of the journals in which workers record their runs; None: a temporary folder."""
    fork_startup_timeout: timedelta
    """Time in which a forked process must report that it is ready, or it is replaced."""
    probe_port: int | None
    """TCP port on which the supervisor answers probes; None: none."""
    probe_address: str
    """Address of this host that it listens at."""
    heartbeat_file: Path | None
    """File that the supervisor touches while it lives; None: none."""
    metrics_token: str | None
    """The bearer token of scrapers of the metrics; None: there is none."""
    statistics: bool
    """Whether workers count what becomes of jobs, by minute, queue and task."""
    drain_timeout: timedelta | None
    """Time that running tasks get when new code takes over; None: any time."""
    backends: Mapping[str, Backend] = field(hash=False)
    """What differs for the databases of single backends, by their alias in ``TASKS``."""
    dialects: Mapping[str, str] = field(hash=False)
    """Names of dialect plugins by database alias, where several plugins match."""
    task_modules: tuple[str, ...]
    """Modules with tasks to import at start, besides the ``tasks`` module of each app."""
    hidden_arguments: str | None
    """Regular expression for the names of arguments whose values the admin hides; None:
    ``HIDDEN_ARGUMENTS``."""

    def __init__(
        self,
        *,
        workers: Sequence[Worker | Mapping[str, object]] | None = None,
        dispatchers: Sequence[Dispatcher | Mapping[str, object]] | None = None,
        scheduler: Scheduler | Mapping[str, object] | None = None,
        process_heartbeat_interval: timedelta | float | None = None,
        process_alive_threshold: timedelta | float | None = None,
        shutdown_timeout: timedelta | float | None = None,
        supervisor_pidfile: str | Path | None = None,
        silence_polling: bool | None = None,
        supervisor_mode: str | None = None,
        state_directory: str | Path | None = None,
        fork_startup_timeout: timedelta | float = timedelta(seconds=30),
        probe_port: int | None = None,
        probe_address: str = "127.0.0.1",
        heartbeat_file: str | Path | None = None,
        metrics_token: str | None = None,
        statistics: bool = True,
        drain_timeout: timedelta | float | None = None,
        backends: Mapping[str, Backend | Mapping[str, object]] | None = None,
        dialects: Mapping[str, str] | None = None,
        task_modules: str | Sequence[str] = (),
        hidden_arguments: str | None = None,
    ) -> None:
        arguments = {
            "workers": workers,
            "dispatchers": dispatchers,
            "scheduler": scheduler,
            "process_heartbeat_interval": process_heartbeat_interval,
            "process_alive_threshold": process_alive_threshold,
            "shutdown_timeout": shutdown_timeout,
            "supervisor_pidfile": supervisor_pidfile,
            "silence_polling": silence_polling,
            "supervisor_mode": supervisor_mode,
            "state_directory": state_directory,
            "fork_startup_timeout": fork_startup_timeout,
            "probe_port": probe_port,
            "probe_address": probe_address,
            "heartbeat_file": heartbeat_file,
            "metrics_token": metrics_token,
            "statistics": statistics,
            "drain_timeout": drain_timeout,
            "backends": backends,
            "dialects": dialects,
            "task_modules": task_modules,
            "hidden_arguments": hidden_arguments,
        }
        self._fill(Reader.for_call("Configuration.Options", arguments))

    @staticmethod
    def _read(reader: Reader) -> dict[str, object]:
        values: dict[str, object] = {
            "workers": read_sections(reader, "workers", Worker),
            "dispatchers": read_sections(reader, "dispatchers", Dispatcher),
            "scheduler": read_scheduler(reader),
            **read_lifetimes(reader),
            "supervisor_mode": read_mode(reader),
            "state_directory": read_path(reader, "state_directory"),
            "fork_startup_timeout": reader.duration("fork_startup_timeout"),
            "probe_port": read_port(reader),
            "probe_address": read_address(reader),
            "heartbeat_file": read_path(reader, "heartbeat_file"),
            "metrics_token": read_token(reader),
            "statistics": reader.flag("statistics"),
            "drain_timeout": read_drain_timeout(reader),
            "backends": read_backends(reader),
            "dialects": read_dialects(reader),
            "task_modules": read_task_modules(reader),
            "hidden_arguments": read_pattern(reader, "hidden_arguments"),
        }
        if values["workers"] == () and values["dispatchers"] == () and not reader.problems:
            reader.problems.append(
                f"{reader.where}: nothing to run: 'workers' and 'dispatchers' are both empty; "
                "leave one of them out to get its default"
            )
        return values

    def resolve(self) -> ResolvedOptions:
        """Fill in the missing options from the module-level settings, then from the defaults.

        Raises ConfigurationError if these are wrong or contradict each other.
        """
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        reader = module_reader(LIFETIMES)
        defaults = read_lifetimes(reader)
        reader.finish()
        defaults |= {
            "workers": (Worker(),),
            "dispatchers": (Dispatcher(),),
            "scheduler": Scheduler(),
        }
        for name, default in defaults.items():
            if values[name] is None:
                values[name] = default
        resolved = ResolvedOptions.parse(values, SETTING)
        for alias in resolved.backends:
            resolved.of_backends([alias])
        return resolved


@dataclass(frozen=True, kw_only=True, init=False)
class ResolvedOptions(Options):
    """Complete options, for the processes."""

    workers: tuple[Worker, ...]
    dispatchers: tuple[Dispatcher, ...]
    scheduler: Scheduler
    process_heartbeat_interval: timedelta
    process_alive_threshold: timedelta
    shutdown_timeout: timedelta
    silence_polling: bool

    def of_backends(self, aliases: Iterable[str]) -> ResolvedOptions:
        """Return the options for the database of these backends, which share it.

        Raises ``ConfigurationError`` if what is set for them contradicts.
        """
        where = f"{SETTING}['backends']"
        own = {alias: self.backends[alias] for alias in aliases if alias in self.backends}
        changed = copy(self)
        for name, value in combined(where, own).items():
            object.__setattr__(changed, name, value)
        if own:
            require_lifetimes(
                f"{where}[{next(iter(own))!r}]",
                changed.process_heartbeat_interval,
                changed.process_alive_threshold,
            )
        return changed

    @property
    def serves(self) -> bool:
        """Whether there are workers or dispatchers at all."""
        return bool(self.workers or self.dispatchers)
