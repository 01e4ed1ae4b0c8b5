"""The ids of jobs as options: ``17``, ``#17``, or ``east:17``, as the results of shards have it."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Mapping
from typing import Any, Self

from ..models.job import parse_job_id
from ..sharding.results import parts
from .exit_codes import WRONG_USAGE, Refusal


class JobId(int):
    """The id of a job, and the backend that it was named with, if any."""

    backend: str | None = None

    @classmethod
    def read(cls, text: str) -> Self:
        """Return what an option says. Raises ``ArgumentTypeError``."""
        backend, number = parts(text) or (None, text.removeprefix("#"))
        found = parse_job_id(number)
        if found is None:
            raise ArgumentTypeError(f"{text!r} is not the id of a job")
        job_id = cls(found)
        job_id.backend = backend
        return job_id


def chosen_backend(options: Mapping[str, Any]) -> str | None:
    """Return the alias that ``--backend`` or the ids of the options name.

    Raises ``Refusal`` if they name several.
    """
    given: str | None = options.get("backend")
    ids: list[Any] = [*(options.get("ids") or ()), options.get("job_id")]
    named = [each.backend or given for each in ids if isinstance(each, JobId)]
    chosen = list(dict.fromkeys([*named, *([] if given is None else [given])]))
    if len(chosen) > 1:
        raise Refusal(
            "The ids are those of several backends: name the jobs of one at a time, with --backend "
            f"or as {next(filter(None, chosen))}:1.",
            WRONG_USAGE,
        )
    return chosen[0] if chosen else None
