"""The unique keys of jobs in memory, under the rules of those in databases."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any, cast

from ..dialects.portable import storable
from ..dialects.unique_keys import UniqueKeys
from ..models import UniqueKey


class MemoryKeys(UniqueKeys):
    """The rows of keys, which are never saved."""

    def __init__(self, clock: Any, jobs: Mapping[int, Any]) -> None:
        super().__init__(cast(Any, None), clock)
        self._jobs_in_memory, self._by_key = jobs, dict[str, Any]()

    def lock(self, keys: Collection[str]) -> dict[str, Any]:
        return {key: self._by_key.setdefault(key, UniqueKey(key=key)) for key in keys}

    def read(self, keys: Collection[str]) -> dict[str, Any]:
        return {key: self._by_key[key] for key in keys if key in self._by_key}

    def take(self, owners: Mapping[str, int]) -> None:
        self._by_key |= {key: UniqueKey(key=key, job_id=owners[key]) for key in owners}

    def free(self, ended: Mapping[str, int | None]) -> None:
        for key, row in self.read(ended).items():
            if row.job_id in (None, ended[key]):
                del self._by_key[key]

    def keep(self, ended: Mapping[str, tuple[int, timedelta]]) -> None:
        for key, row in self.read(ended).items():
            job_id, period = ended[key]
            if row.job_id == job_id:
                row.expires_at = storable(self.dialect.current_time(self.connection) + period)

    def _jobs(self, job_ids: Sequence[int]) -> dict[int, Any]:
        jobs = self._jobs_in_memory
        return {job_id: jobs[job_id].row for job_id in job_ids if job_id in jobs}
