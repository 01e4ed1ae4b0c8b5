"""Runs the faults of one engine, one after another, on one cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from steady_queue_core import migrations
from tests.older_code import OlderCode

from . import tables
from .cluster import Cluster
from .faults import RECOVERY, Fault
from .judge import judge
from .load import Load
from .table import Row

#: Seconds that the load goes on when all nodes are well again.
AFTERWARDS = 5.0
#: How many migrations the older code does not know: the load needs what came before these.
BEHIND = 5


def run_engine(
    name: str, cluster: Cluster, faults: Sequence[Fault], seconds: float, folder: Path
) -> Iterator[Row]:
    """Yield a row for each fault. A cluster that does not recover ends the run of its engine."""
    left = list(faults)
    try:
        cluster.start()
        # A standby has to be synchronous before it may follow a primary that is killed.
        cluster.wait_complete(RECOVERY)
        while left:
            fault = left.pop(0)
            yield _run(name, cluster, fault, seconds, folder / fault.name.replace(" ", "-"))
            cluster.wait_complete(RECOVERY)
    except TimeoutError as error:
        yield from (Row(name, each.name, problem=f"not run: {error}") for each in left)
    finally:
        cluster.stop()


def _run(name: str, cluster: Cluster, fault: Fault, seconds: float, folder: Path) -> Row:
    places = cluster.nodes[:2] if fault.two_writers else (None, None)
    supervisors = [cluster.database(each) for each in places]
    code = OlderCode(folder / "code", _first_unknown()) if fault.older_code else None
    load = Load(folder / "load", cluster.database(), supervisors, code)
    problem = ""
    try:
        cluster.empty()
        load.prepare()
        load.start()
        try:
            fault.play(cluster, load, seconds)
            cluster.wait_complete(RECOVERY)
            load.run_for(AFTERWARDS)
        except (TimeoutError, LookupError) as error:
            problem = str(error)
        load.drain()
        exits = load.end()
        verdict = judge(
            load.effects(),
            load.acknowledgements(),
            tables.look(cluster.query),
            exits=exits,
            broken_at=load.broken_at,
            promoted_at=load.promoted_at,
        )
        return Row(name, fault.name, verdict, problem, is_failed=bool(problem))
    except Exception as error:
        return Row(name, fault.name, problem=f"{type(error).__name__}: {error}", is_failed=True)
    finally:
        load.close()


def _first_unknown() -> str:
    known = sorted(Path(migrations.__path__[0]).glob("[0-9]*.py"))
    return known[-BEHIND].stem
