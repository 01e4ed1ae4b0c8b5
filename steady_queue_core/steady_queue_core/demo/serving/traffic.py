"""Traffic: how many jobs of which task the shop has, and what becomes of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

APP = "shop.tasks"


def busyness(minute: float) -> float:
    """Return how much the shop has to do in a minute since 1970, compared with the usual."""
    return 1 + 0.2 * math.sin(minute / 5) + 0.1 * math.sin(minute / 1.3)


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """The jobs of one task. Durations are usual ones, in milliseconds."""

    task: str
    queue: str
    per_minute: float
    run: float
    wait: float = 4
    #: Shares of the attempts.
    failed: float = 0
    retried: float = 0
    #: How many are enqueued together.
    at_once: int = 1

    @property
    def path(self) -> str:
        return f"{APP}.{self.task}"


#: What is enqueued in these numbers: each task takes one number.
ENQUEUED = (
    Traffic(task="send_receipt", queue="mail", per_minute=60, run=30),
    Traffic(task="update_stock", queue="stock", per_minute=42, run=60, retried=0.08),
    Traffic(task="resize_image", queue="media", per_minute=48, run=280, wait=300, at_once=8),
    Traffic(task="charge_card", queue="payments", per_minute=24, run=150, failed=0.03),
    Traffic(task="read_price_list", queue="imports", per_minute=2, run=80, failed=0.3),
    # More than can run one at a time, so that some are always blocked.
    Traffic(
        task="import_catalog", queue="imports", per_minute=4, run=18_000, wait=90_000, at_once=2
    ),
    Traffic(task="publish_offer", queue="listings", per_minute=2, run=300, wait=10_000, at_once=4),
    Traffic(task="build_report", queue="reports", per_minute=3, run=7_000),
)

#: What comes from schedules, workflows and batches, or for later.
OTHERS = (
    Traffic(task="remind_customer", queue="mail", per_minute=1, run=20, wait=120_000),
    Traffic(task="export_orders", queue="reports", per_minute=0.24, run=240_000),
    Traffic(task="reserve", queue="parcels", per_minute=3, run=60),
    Traffic(task="pack", queue="parcels", per_minute=15, run=120, wait=100),
    Traffic(task="ship", queue="parcels", per_minute=3, run=90, wait=250),
    Traffic(task="print_labels", queue="parcels", per_minute=1, run=100),
    Traffic(task="expire_carts", queue="stock", per_minute=2, run=15),
    Traffic(task="refresh_prices", queue="stock", per_minute=1, run=300),
    Traffic(task="fetch_ratings", queue="web", per_minute=0.5, run=400, failed=1),
)
