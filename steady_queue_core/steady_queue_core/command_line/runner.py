"""Running the subcommand that was chosen: errors become messages, JSON and an exit status."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, InterfaceError, connections

from ..configured_backends import queue_databases
from ..errors import DialectError, MigrationsMissing, SteadyQueueError
from ..models.readiness import pending_migrations
from .choice import CHOICE
from .context import Context, Output, Unwritable
from .exit_codes import BROKEN_PIPE, FAILED, INTERRUPTED, REFUSED, Refusal
from .registry import named
from .subcommand import Subcommand


def run(subcommand: Subcommand, context: Context) -> int:
    """Run a subcommand; return its exit status."""
    try:
        code = _run(subcommand, context)
        context.flush()
        return code
    except BrokenPipeError:
        _silence()
        return BROKEN_PIPE
    except Unwritable as error:
        context.note(f"The output cannot be written: {error}")
        _silence()
        return FAILED


def _run(subcommand: Subcommand, context: Context) -> int:
    try:
        return subcommand.run(context)
    except Refusal as refusal:
        return _fail(context, str(refusal), refusal.exit_code)
    except (DialectError, MigrationsMissing, ImproperlyConfigured) as error:
        return _fail(context, str(error), REFUSED)
    except SteadyQueueError as error:
        return _fail(context, str(error), FAILED)
    except (DatabaseError, InterfaceError) as error:
        return _fail_by_database(context, error)
    except BrokenPipeError:
        raise
    except OSError as error:
        return _fail(context, str(error), FAILED)
    except KeyboardInterrupt:
        return _fail(context, "Interrupted.", INTERRUPTED)


def _fail(context: Context, message: str, code: int) -> int:
    if context.has_shown:
        context.note(message)
    else:
        context.show({}, problems=[message])
    return code


def _fail_by_database(context: Context, error: Exception) -> int:
    pending = pending_anywhere()
    if pending:
        listed = ", ".join(pending)
        return _fail(context, f"Migrations are pending: {listed}. Run: manage.py migrate", REFUSED)
    return _fail(context, f"The database reports an error: {str(error).strip()}", FAILED)


def _silence() -> None:
    """Let Python find nobody's pipe when it flushes the output at its end."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def pending_anywhere() -> list[str]:
    """Return the migrations that any database of the queue lacks, as far as they answer."""
    found: dict[str, None] = {}
    for using in queue_databases():
        try:
            found.update(dict.fromkeys(pending_migrations(connections[using])))
        except (DatabaseError, InterfaceError):
            continue
    return list(found)


def run_subcommand(options: Mapping[str, Any], stdout: Output, stderr: Output) -> None:
    """Run the subcommand that the options name; raise SystemExit unless its exit status is 0."""
    subcommand, context = named(options[CHOICE]), Context(options, stdout, stderr)
    if subcommand.name != options[CHOICE]:
        context.note(f"{options[CHOICE]} is called {subcommand.name} now: the old name goes soon.")
    code = run(subcommand, context)
    if code:
        sys.exit(code)
