"""The ids of results of a sharded backend: ``"<alias of the shard>:<id of the job>"``."""

from __future__ import annotations

SEPARATOR = ":"


def joined(shard: str, job_id: str) -> str:
    """Return the id of the result of a job; of one that is not stored, ``""``."""
    return f"{shard}{SEPARATOR}{job_id}" if job_id else ""


def parts(result_id: object) -> tuple[str, str] | None:
    """Return the shard and the id of the job that a text names; ``None``: it names none."""
    if not isinstance(result_id, str):
        return None
    shard, separator, job_id = result_id.rpartition(SEPARATOR)
    return (shard, job_id) if separator and shard and job_id else None
