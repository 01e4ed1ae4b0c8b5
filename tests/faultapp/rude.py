"""Tasks that leave something behind in their thread, or in their process."""

from __future__ import annotations

import asyncio

from asgiref.sync import sync_to_async
from django.db import connection

from steady_queue_core import task

from .models import Note


def _execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def _begin() -> None:
    _execute("BEGIN")
    Note.objects.create(text="never committed")


@task
def begin() -> None:
    """Begin a transaction and return."""
    _begin()


@task
async def abegin() -> None:
    await sync_to_async(_begin)()


@task
def close() -> None:
    """Close what the wrapper holds, and not the wrapper."""
    connection.ensure_connection()
    connection.connection.close()


@task
def note(text: str) -> None:
    Note.objects.create(text=text)


@task
async def anote(text: str) -> None:
    await Note.objects.acreate(text=text)


@task
async def in_own_transaction(text: str, seconds: float) -> None:
    """Keep a transaction over several steps, which others could disturb."""
    await sync_to_async(_execute)("BEGIN")
    await Note.objects.acreate(text=text)
    await asyncio.sleep(seconds)
    await sync_to_async(_execute)("COMMIT")


@task
def session(statement: str) -> None:
    """Change the session for whoever comes next."""
    _execute(statement)


@task
async def asession(statement: str) -> None:
    await sync_to_async(_execute)(statement)
