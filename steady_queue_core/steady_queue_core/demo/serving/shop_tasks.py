"""The tasks of a made-up shop, which wait in place of working."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from random import lognormvariate, random
from typing import Any

from steady_queue_core import Fail, limits_concurrency, limits_rate, recurring, task
from steady_queue_core.retries import constant


def work(milliseconds: float) -> None:
    """Take about so long: most often a little less, sometimes much longer."""
    time.sleep(milliseconds / 1000 * min(lognormvariate(0, 0.4), 5))


@task(queue_name="mail")
def send_receipt(order: int) -> str:
    """Be quick."""
    work(30)
    return f"receipt-{order}.pdf"


@task(queue_name="mail", priority=-10)
def remind_customer(order: int) -> None:
    """Is enqueued for later."""
    work(20)


@task(queue_name="newsletter")
def send_newsletter(customer: int) -> None:
    """Wait in a queue that is paused."""
    work(50)


@task(queue_name="stock", takes_context=True, max_attempts=4, backoff=constant(2))
def update_stock(context: Any, article: int) -> int:
    """Fail now and then, and succeed when it is tried again."""
    work(60)
    if context.attempt == 1 and random() < 0.08:
        raise ConnectionError(f"the warehouse does not answer for article {article}")
    return article % 40


@task(queue_name="media", priority=-5)
def resize_image(article: int) -> str:
    """Take a while, and come in bursts."""
    work(280)
    return f"{article}-800x600.webp"


@task(queue_name="payments", priority=10)
def charge_card(order: int) -> float:
    """Fail for good now and then."""
    work(150)
    chance = random()
    if chance < 0.02:
        raise Fail(f"the card for order {order} was refused: insufficient funds")
    if chance < 0.03:
        raise Fail(f"the card for order {order} has expired")
    return order % 90 + 0.95


@task(queue_name="imports")
def read_price_list(supplier: int) -> int:
    """Fail often: the lists of some suppliers are broken."""
    work(80)
    if random() < 0.3:
        raise ValueError(f"line {supplier % 50 + 2} has {supplier % 3 + 2} columns, not 6")
    return supplier % 500


@limits_concurrency(key="catalog", to=1, duration=timedelta(minutes=5))
@task(queue_name="imports", takes_context=True)
async def import_catalog(context: Any, supplier: int) -> None:
    """Run one at a time, so that others are blocked."""
    for page in range(10):
        await context.aprogress(page, 10, "pages")
        await asyncio.sleep(2)


@limits_rate(to=6, per=timedelta(minutes=1))
@task(queue_name="listings")
async def publish_offer(article: int) -> None:
    """Start at most six times in a minute."""
    await asyncio.sleep(0.3)


@task(queue_name="reports", takes_context=True)
async def build_report(context: Any, month: int) -> None:
    """Take some seconds, and tell how far it is."""
    for page in range(7):
        await context.aprogress(page, 7, "pages")
        await asyncio.sleep(1)


@limits_concurrency(key="export", to=1, duration=timedelta(minutes=10), on_conflict="discard")
@task(queue_name="reports", takes_context=True)
async def export_orders(context: Any, year: int) -> None:
    """Take minutes."""
    for percent in range(100):
        await context.aprogress(percent, 100)
        await asyncio.sleep(2.4)


@task(queue_name="parcels")
def reserve(order: int) -> int:
    """Be the first step of a workflow, whose result is an argument of others."""
    work(60)
    return order


@task(queue_name="parcels")
def pack(order: int) -> int:
    """Be a step of a workflow, or one of a batch."""
    work(120)
    return order


@task(queue_name="parcels")
def ship(order: int) -> None:
    """Be the last step."""
    work(90)


@task(queue_name="parcels", takes_context=True)
def print_labels(context: Any) -> int:
    """Run when a batch has ended."""
    work(100)
    return int(context.batch.completed)


@recurring(schedule=timedelta(seconds=30), key="expire carts")
@task(queue_name="stock")
def expire_carts() -> None:
    """Run twice a minute."""
    work(15)


@recurring(schedule=timedelta(minutes=1), key="refresh prices")
@task(queue_name="stock")
def refresh_prices() -> None:
    """Run each minute."""
    work(300)


@recurring(schedule="*/2 * * * *", key="fetch ratings")
@task(queue_name="web")
async def fetch_ratings() -> None:
    """Fail each time."""
    await asyncio.sleep(0.4)
    raise TimeoutError("ratings.example did not answer within 0.4 s")


@recurring(schedule="0 6 * * *", key="sales of the day")
@recurring(schedule="30 5 * * 1", key="sales of the week")
@task(queue_name="reports")
def sum_up_sales() -> None:
    """Run in the morning."""
    work(900)
