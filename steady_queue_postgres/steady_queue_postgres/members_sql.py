"""The part of a settlement that ends members of batches, and what it changes in the other parts.

It is for members that only their batch waits for, and only while another member of it is pending:
that one is locked, so that whoever ends it comes later and looks again. Otherwise the batch may be
about to end: then the statement changes nothing, for there is more to do than it can.
"""

from __future__ import annotations

from steady_queue_core.dialects import MemberState, tables

PENDING = int(MemberState.PENDING)

# Its own members are locked first: of two statements that each lock the other's member, and then
# wait to end their own, neither would go on.
LOCKED = f"""
own AS MATERIALIZED (
  SELECT id, job_id, batch_id FROM {tables.MEMBERS}
  WHERE job_id = ANY(%(member_jobs)s::bigint[]) AND state = {PENDING}
  ORDER BY job_id FOR UPDATE),
declined AS MATERIALIZED (
  SELECT FROM (SELECT DISTINCT batch_id FROM own) AS whole
  LEFT JOIN LATERAL (
    SELECT other.id FROM {tables.MEMBERS} AS other
    WHERE other.batch_id = whole.batch_id AND other.state = {PENDING}
          AND other.id <> ALL(ARRAY(SELECT id FROM own))
    ORDER BY other.id DESC LIMIT 1 FOR UPDATE SKIP LOCKED) AS pending ON true
  WHERE pending.id IS NULL)"""

#: Whether the statement changes nothing.
DECLINED = "EXISTS (SELECT FROM declined)"
#: What it returns in that case in place of an expression.
UNLESS_DECLINED = f"CASE WHEN {DECLINED} THEN 'null' ELSE {{}} END"

# After all other rows of the settlement.
_MEMBER = f"""
member AS (
  UPDATE {tables.MEMBERS} AS member SET state = {{state}} {{source}}
  WHERE member.id = ANY(ARRAY(SELECT id FROM own))
        AND member.job_id = ANY(ARRAY(SELECT job_id FROM held)){{condition}})"""
END = _MEMBER.format(
    state="ending.state",
    source="FROM unnest(%(member_jobs)s::bigint[], %(member_states)s::smallint[]) "
    "AS ending(job_id, state)",
    condition=" AND member.job_id = ending.job_id",
)
#: For jobs that have finished, all of them.
END_ALIKE = _MEMBER.format(state=int(MemberState.SUCCEEDED), source="", condition="")
