"""Which claim takes over the permit of a job that has ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ...dialects import ClaimedJob, Outcome


class Heirs:
    """The chains of a worker: the heir is the first job of a chain that has not been settled. It
    may run already, or wait to be settled in its turn."""

    def __init__(self) -> None:
        #: By job: the jobs of its chain whose claims are not settled, in their order.
        self._chains: dict[int, dict[int, None]] = {}

    def add(self, followers: Iterable[ClaimedJob]) -> None:
        """Note jobs that follow others, each after the job that it follows."""
        for claim in followers:
            followed = claim.follows
            assert followed is not None
            chain = self._chains.setdefault(followed, {followed: None})
            chain[claim.job_id] = None
            self._chains[claim.job_id] = chain

    def forget(self, job_id: int) -> None:
        """Note that the claim of a job is settled."""
        chain = self._chains.pop(job_id, None)
        if chain is not None:
            del chain[job_id]

    def named(
        self, outcomes: Sequence[Outcome], ended: Iterable[Outcome], held: Mapping[int, ClaimedJob]
    ) -> Sequence[Outcome]:
        """Return ``outcomes`` with their heirs, none of which is among those that have ``ended``;
        ``held``: the claims of the worker."""
        if not self._chains:
            return outcomes
        gone = {outcome.job_id for outcome in ended}
        heirs: dict[int, tuple[int, int] | None] = {}

        def heir_of(job_id: int) -> tuple[int, int] | None:
            chain = self._chains.get(job_id)
            if chain is None:
                return None
            if id(chain) not in heirs:
                heir = next((held[each] for each in chain if each not in gone), None)
                heirs[id(chain)] = None if heir is None else (heir.job_id, heir.token)
            return heirs[id(chain)]

        return [
            outcome._replace(heir=heir_of(outcome.job_id)) if outcome.ends_permit else outcome
            for outcome in outcomes
        ]
