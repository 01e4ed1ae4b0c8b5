"""The part of a settlement that passes permits to heirs, and what it changes in the other parts."""

from __future__ import annotations

from steady_queue_core.dialects import tables

# An heir that has a permit already takes no other, and one that ends as well takes none.
PASS = f"""
heir AS MATERIALIZED (
  SELECT ended.job_id, ended.heir FROM ended JOIN {tables.CLAIMED} AS claim
  ON claim.job_id = ANY(ARRAY(SELECT heir FROM ended))
     AND claim.job_id = ended.heir AND claim.token = ended.heir_token
  WHERE ending <> 'released' AND ended.heir <> ALL(ARRAY(
    SELECT job_id FROM ended UNION ALL
    SELECT job_id FROM {tables.PERMITS} WHERE job_id = ANY(ARRAY(SELECT heir FROM ended))))),
passed_permit AS (
  UPDATE {tables.PERMITS} AS permit SET job_id = heir.heir FROM heir
  WHERE permit.job_id = ANY(ARRAY(SELECT job_id FROM heir)) AND permit.job_id = heir.job_id)"""

_LAST_COLUMN = "concurrency_key text"
_ENDED = "SELECT job_id FROM ended WHERE ending <> 'released'"


def completed(settling: str) -> str:
    """Return the expressions of a settlement that has ``PASS``: its outcomes name heirs, and the
    permits that pass do not end."""
    # A statement may change a row only once.
    return settling.replace(
        _LAST_COLUMN, f"{_LAST_COLUMN}, heir bigint, heir_token bigint", 1
    ).replace(_ENDED, f"{_ENDED} EXCEPT SELECT job_id FROM heir", 1)
