"""Columns of the list of queues, and fields of the page of one."""

from __future__ import annotations

from typing import Any

from django.utils.html import format_html

from . import texts
from .columns import attribute, column
from .detail import Fields

name = attribute("queue", "queue_name")


@column("state")
def state(queue: Any) -> str:
    if not queue.paused:
        return "open"
    return format_html("<strong>{}</strong>", texts.dated("paused", queue.paused_since))


@column("ready")
def ready(queue: Any) -> str:
    return format_html('<a href="{}">{}</a>', queue.jobs_url, queue.count.text)


@column("oldest wait")
def oldest(queue: Any) -> str:
    return texts.between(queue.count.first, queue.present)


@column("shared fairly")
def fair(queue: Any) -> str:
    """Return the weight that keys of a fair queue have by default; nothing for other queues."""
    return "" if queue.weight is None else f"weight {queue.weight:g}"


def queue_fields(queue: Any) -> Fields:
    """Return the fields of the page of a queue."""
    return Fields(
        "Queue",
        [
            ("Name", texts.clean(queue.queue_name)),
            ("State", state(queue)),
            ("Shared fairly", fair(queue)),
            ("Paused since", texts.moment(queue.paused_since)),
            ("Ready jobs", ready(queue)),
            ("Oldest wait", oldest(queue)),
        ],
    )
