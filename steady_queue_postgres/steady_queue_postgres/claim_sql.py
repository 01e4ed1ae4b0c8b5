"""The parts of a statement that claims ready jobs.

A claim reads spans of an index in order: from a rank and a turn on, up to another rank. Index and
order are the same, so that the cost depends on the limit alone, however many jobs are ready.
"""

from __future__ import annotations

from functools import cache

from steady_queue_core.dialects import EXECUTION_COLUMNS, JOB_COLUMNS, tables
from steady_queue_core.dialects.portable import MANY_PAUSED

from .clock import NOW_SQL, seconds
from .listing import WALK
from .members_sql import DECLINED
from .settle_sql import Part, has_waiting, held, settling

#: For each range of names that a worker excludes, whether it has an end.
Ranges = tuple[bool, ...]

REGISTERED = f"""EXISTS (
  SELECT FROM {tables.PROCESSES} WHERE id = %(process_id)s AND name = %(process_name)s)"""
#: Like those of ``portable.next_token``.
NEXT_TOKEN = "(((token >> 32) + 1) << 32) + floor(random() * 4294967296)::bigint"
PAUSED = f"SELECT queue_name FROM {tables.PAUSES}"

_SPANS = """
unnest(%(queues)s::text[], %(ranks)s::int[], %(turns)s::float8[], %(ends)s::int[])
WITH ORDINALITY AS span(queue_name, "rank", turn, "end", position)"""

LOCK = "FOR UPDATE SKIP LOCKED"

_ROWS = f"""
SELECT ready.ctid AS tid FROM {tables.READY} AS ready WHERE {{condition}}
ORDER BY {{order}} LIMIT %(limit)s {LOCK}"""

_IN_ORDER = 'ready."rank", ready.turn'
# If the name is part of the order, and no constant, only one index has that order. Else the planner
# may take the other one, and pass over all jobs of other queues, when most jobs are in one queue.
_IN_ORDER_OF_QUEUES = f"ready.queue_name, {_IN_ORDER}"

_WITHIN = """
(ready."rank", ready.turn) >= (span."rank", span.turn) AND ready."rank" < span."end" """

_OF_ANY = _ROWS.format(
    condition=f"ready.queue_name NOT IN ({PAUSED}) AND {_WITHIN}", order=_IN_ORDER
)

#: By priority alone, over all queues except the paused ones.
BY_RANK = f"""
SELECT picked.tid FROM {_SPANS} CROSS JOIN LATERAL ({_OF_ANY}) AS picked
WHERE {REGISTERED} ORDER BY position LIMIT %(limit)s"""

_WITHIN_QUEUE = """
(ready.queue_name, ready."rank", ready.turn) >= (span.queue_name, span."rank", span.turn)
AND (ready.queue_name, ready."rank") < (span.queue_name, span."end")"""

_OF_SPAN = _ROWS.format(condition=_WITHIN_QUEUE, order=_IN_ORDER_OF_QUEUES)

#: Queue by queue, in the order of their names in the selector.
BY_NAME = f"""
SELECT picked.tid FROM {_SPANS} CROSS JOIN LATERAL ({_OF_SPAN}) AS picked
WHERE {REGISTERED} AND span.queue_name NOT IN ({PAUSED}) ORDER BY position LIMIT %(limit)s"""

# The first pattern that matches a queue decides its position.
_MATCHING = f"""
SELECT found.name, min(wanted.position) AS position
FROM unnest(%(lows)s::text[], %(highs)s::text[]) WITH ORDINALITY AS wanted(low, high, position)
CROSS JOIN LATERAL ({WALK}) AS found
WHERE found.name NOT IN ({PAUSED}) GROUP BY found.name"""

_OF_QUEUE = _ROWS.format(
    condition="ready.queue_name >= queue.name AND ready.queue_name <= queue.name",
    order=_IN_ORDER_OF_QUEUES,
)

#: Queue by queue, among those that have ready jobs.
BY_PATTERN = f"""
SELECT picked.tid
FROM (SELECT * FROM ({_MATCHING}) AS matching ORDER BY position, name) AS queue
CROSS JOIN LATERAL ({_OF_QUEUE}) AS picked
WHERE {REGISTERED} ORDER BY queue.position, queue.name LIMIT %(limit)s"""

#: The number of ready jobs in paused queues that a claim may have to pass over, up to a limit.
_JOBS_OF_PAUSED = f"""
SELECT count(*) FROM ({PAUSED}) AS paused CROSS JOIN LATERAL (
  SELECT FROM {tables.READY} AS ready
  WHERE ready.queue_name >= paused.queue_name AND ready.queue_name <= paused.queue_name
  ORDER BY {_IN_ORDER_OF_QUEUES} LIMIT {MANY_PAUSED}) AS passed"""

_JOBS_OF_EXCLUDED = f"""
SELECT count(*) FROM (SELECT FROM {tables.READY} AS ready WHERE {{within}}
                      LIMIT {MANY_PAUSED}) AS passed"""

# A walk over the index, as for the names of queues.
#: The ranks of ready jobs, each with its last turn.
LAST_BY_RANK = f"""
WITH RECURSIVE step("rank") AS (
  (SELECT "rank" FROM {tables.READY} ORDER BY "rank" LIMIT 1)
  UNION ALL
  SELECT (SELECT "rank" FROM {tables.READY} WHERE "rank" > step."rank" ORDER BY "rank" LIMIT 1)
  FROM step WHERE step."rank" IS NOT NULL)
SELECT "rank", (SELECT turn FROM {tables.READY} AS ready
                WHERE (ready."rank", ready.turn) < (step."rank" + 1, 0)
                ORDER BY ready."rank" DESC, ready.turn DESC LIMIT 1)
FROM step WHERE "rank" IS NOT NULL"""

_READ_AS = {name: f"{seconds(name)} AS {name}" for name in ("enqueued_at", "started_at")}
_OF_EXECUTION = ", ".join(f'taken."{name}"' for name in EXECUTION_COLUMNS)
_OF_JOB = ", ".join(_READ_AS.get(name, name) for name in JOB_COLUMNS)

# Rows are taken by their tid: `job_id IN (SELECT ... LIMIT n FOR UPDATE SKIP LOCKED)` runs the
# inner select many times under some plans, and takes many times its limit. Jobs are read by their
# ids before more is asked of them: the planner would use the index of unfinished jobs. A stray
# ready row, whose job is gone, has ended or is running, is deleted for good.
TAKE = f"""
picked AS MATERIALIZED ({{pick}}),
taken AS (
  DELETE FROM {tables.READY} WHERE ctid = ANY(ARRAY(SELECT tid FROM picked))
  RETURNING job_id, {NEXT_TOKEN} AS token, queue_name, "rank", {{turn}} AS turn),
running AS (
  SELECT job_id FROM {tables.CLAIMED} WHERE job_id = ANY(ARRAY(SELECT job_id FROM taken))),
known AS MATERIALIZED (
  SELECT * FROM {tables.JOBS} WHERE id = ANY(ARRAY(SELECT job_id FROM taken))),
job AS MATERIALIZED (
  SELECT taken.turn, {_OF_EXECUTION}, {_OF_JOB}
  FROM taken JOIN known ON known.id = taken.job_id
  WHERE finished_at IS NULL AND taken.job_id NOT IN (SELECT job_id FROM running)),
claimed AS (
  INSERT INTO {tables.CLAIMED} (job_id, token, queue_name, "rank", created_at, process_id)
  SELECT job_id, token, queue_name, "rank", {NOW_SQL}, %(process_id)s FROM job)"""

# One row about the statement as a whole, then one for each claimed job: the columns of the other
# kind are NULL.
RESULT = f"""
summary AS (
  SELECT {seconds(NOW_SQL)} AS claimed_at,
         {{held}} AS held,
         {{has_waiting}} AS has_waiting,
         (SELECT count(*) FROM ({PAUSED}) AS paused) AS paused_queues,
         CASE WHEN %(asks)s THEN ({_JOBS_OF_PAUSED}) END AS jobs_of_paused,
         CASE WHEN %(asks)s THEN pg_stat_get_dead_tuples('{tables.READY}'::regclass)
         END AS dead_rows)
SELECT * FROM summary FULL JOIN job ON false"""


@cache
def claiming(pick: str, parts: frozenset[Part], excluded: Ranges = ()) -> str:
    """Return a statement that settles claims by ``parts``, if there are any, and claims jobs of
    queues that are not ``excluded``."""
    pick = without(pick, excluded)
    if Part.PERMITS in parts:
        # Nothing is claimed while a job waits for a permit that ends here: it may be first.
        pick = pick.replace(REGISTERED, f"{REGISTERED} AND NOT {has_waiting(parts)}")
    if Part.MEMBERS in parts:
        pick = pick.replace(REGISTERED, f"{REGISTERED} AND NOT {DECLINED}")
    result = RESULT.format(
        held=held(parts) if parts else "NULL::text", has_waiting=has_waiting(parts)
    )
    result = result.replace(_JOBS_OF_PAUSED, _jobs_in_the_way(excluded))
    expressions = [settling(parts)] if parts else []
    taking = TAKE.format(pick=pick, turn="turn")
    return f"WITH {', '.join([*expressions, taking, result])}"


@cache
def probe(pick: str, excluded: Ranges = ()) -> str:
    """Return a statement that says whether ``pick`` would select anything, without locking it, and
    how many queues are paused."""
    any_picked = f"EXISTS ({without(pick, excluded).replace(LOCK, '')})"
    paused = f"(SELECT count(*) FROM ({PAUSED}) AS paused)"
    return f"SELECT {any_picked} AS finds_any, {paused} AS paused_queues"


def without(pick: str, excluded: Ranges) -> str:
    """Return ``pick`` without the queues that are ``excluded``."""
    for column in ("ready.queue_name", "span.queue_name", "found.name"):
        served = f"{column} NOT IN ({PAUSED})"
        others = [f"NOT ({within})" for within in _conditions(column, excluded)]
        pick = pick.replace(served, " AND ".join([served, *others]))
    return pick


def _jobs_in_the_way(excluded: Ranges) -> str:
    """Return a query for the number of ready jobs that a claim may have to pass over."""
    counts = [
        f"({_JOBS_OF_EXCLUDED.format(within=within)})"
        for within in _conditions("ready.queue_name", excluded)
    ]
    return f"SELECT {' + '.join([f'({_JOBS_OF_PAUSED})', *counts])}" if counts else _JOBS_OF_PAUSED


def _conditions(column: str, excluded: Ranges) -> list[str]:
    return [
        f"{column} >= %(excluded_low_{number})s::text"
        + (f" AND {column} < %(excluded_end_{number})s::text" if has_end else "")
        for number, has_end in enumerate(excluded)
    ]
