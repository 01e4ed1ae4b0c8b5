"""Ending members of batches that others are left of, under the one write lock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steady_queue_core.dialects import MemberState, Outcome, tables

PENDING = int(MemberState.PENDING)

# Nested batches are members without a job.
AT_ITS_END = f"""
WITH own AS (
  SELECT member.id, member.batch_id
  FROM json_each(%s) AS ended JOIN {tables.MEMBERS} AS member ON member.job_id = ended.value
  WHERE member.state = {PENDING})
SELECT 1 FROM (SELECT DISTINCT batch_id FROM own) AS whole
WHERE NOT EXISTS (
  SELECT 1 FROM {tables.MEMBERS} AS other
  WHERE other.batch_id = whole.batch_id AND other.state = {PENDING}
        AND other.id NOT IN (SELECT id FROM own))
LIMIT 1"""
END = f"UPDATE {tables.MEMBERS} SET state = %s WHERE job_id = %s AND state = {PENDING}"


def is_any_batch_at_its_end(cursor: Any, ended: Sequence[Outcome]) -> bool:
    """Return whether a batch would have no pending member any more after these."""
    cursor.execute(AT_ITS_END, [str([outcome.job_id for outcome in ended])])
    return cursor.fetchone() is not None


def end_members(cursor: Any, ended: Sequence[Outcome]) -> None:
    """Write what has become of the members with these jobs."""
    cursor.executemany(END, [(int(outcome.member_state), outcome.job_id) for outcome in ended])
