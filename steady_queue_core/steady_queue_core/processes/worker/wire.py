"""Claims and outcomes as JSON, on their way between a worker and its task processes."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, get_args, get_type_hints

from ...dialects import ClaimedJob, Ending, Outcome, Sequel, StepRecord
from ...progress import Progress
from ...tasks.step_order import checked_name
from .follow_up_wire import read_follow_ups, write_follow_up

#: What the claim says of its outcome; whoever ran the job has no say in it.
_OF_CLAIM = ("job_id", "token", "queue_name", "rank", "concurrency_key", "unique_key", "link")
_DEFAULTS = Outcome._field_defaults
#: The fields of an outcome that are sent, and their types.
_TYPES: dict[str, Any] = {
    # A tuple is faster to check than a union.
    name: get_args(hint) or hint
    for name, hint in get_type_hints(Outcome).items()
    if name not in (*_OF_CLAIM, "ending", "heir", "sequel")
}
#: Those of them that an outcome has of itself, with its defaults.
_SENT = [(name, _DEFAULTS[name]) for name in _TYPES]
_TYPES["delay"] = (float, int)
#: Of the sequel, only what an ending changes in the row of the job.
_TYPES["metadata"] = str
#: Whether the task process has settled the job itself.
_TYPES["settled"] = bool
#: What the task has left to the transaction of the outcome.
_TYPES["follow_ups"] = list
#: What is still to be stored of its progress, and whether it needs its checkpoint no more.
_TYPES["progress"] = list
_TYPES["ends_checkpoint"] = bool
#: The sleeps that it has begun, and whether its steps go with its job.
_TYPES["sleeps"] = list
_TYPES["ends_steps"] = bool
#: The largest number of a column.
MOST_STEPS = 2**31 - 1
_INSTANTS = ("started_at", "last_attempted_at")
_INSTANTS_OF_CLAIM = [
    ClaimedJob._fields.index(name) for name in ("enqueued_at", "started_at", "claimed_at")
]
_NAMES = frozenset({"ending", *_TYPES})
_OF_SEQUEL = frozenset(
    {"metadata", "follow_ups", "progress", "ends_checkpoint", "sleeps", "ends_steps"}
)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number")


# Made once: json.dumps() and json.loads() make new ones where an option is given.
# SQLite lets a row hold bytes instead of text: that they are wrong is found by whoever runs it.
_encode = json.JSONEncoder(default=repr, check_circular=False).encode
_decode = json.JSONDecoder(parse_constant=_refuse).decode


def write_job(claim: ClaimedJob, began: datetime) -> bytes:
    """Return a claim, and when its attempt began."""
    values: list[Any] = [*claim, began]
    for index in (*_INSTANTS_OF_CLAIM, -1):
        if values[index] is not None:
            values[index] = values[index].isoformat()
    return _encode(values).encode()


def read_job(data: bytes) -> tuple[ClaimedJob, datetime]:
    """Return what was given to ``write_job``."""
    values = _decode(data.decode())
    for index in (*_INSTANTS_OF_CLAIM, -1):
        if values[index] is not None:
            values[index] = datetime.fromisoformat(values[index])
    *fields, began = values
    return ClaimedJob(*fields), began


def write_outcome(outcome: Outcome, *, settled: bool | None = None) -> bytes:
    """Return an outcome, without what is known of its claim. ``settled``: see ``RunResult``."""
    sent: dict[str, Any] = {"ending": outcome.ending.value}
    if settled is not None:
        sent["settled"] = settled
    for name, default in _SENT:
        value = getattr(outcome, name)
        if value != default:
            sent[name] = value.isoformat() if name in _INSTANTS else value
    if outcome.sequel is not None:
        sent |= _written(outcome.sequel)
    return _encode(sent).encode()


def _written(sequel: Sequel) -> dict[str, Any]:
    sent: dict[str, Any] = {}
    if sequel.metadata is not None:
        sent["metadata"] = sequel.metadata
    if sequel.follow_ups:
        sent["follow_ups"] = [write_follow_up(each) for each in sequel.follow_ups]
    if (progress := sequel.progress) is not None:
        sent["progress"] = [progress.done, progress.total, progress.text]
    if sequel.ends_checkpoint:
        sent["ends_checkpoint"] = True
    if sequel.sleeps:
        sent["sleeps"] = [[each.name, each.position, each.data] for each in sequel.sleeps]
    if sequel.ends_steps:
        sent["ends_steps"] = True
    return sent


def read_outcome(data: bytes, claim: ClaimedJob) -> tuple[Outcome, bool | None]:
    """Return the outcome of ``claim``, and whether it is settled. Raises ``ValueError`` for
    anything that is none."""
    sent = _decode(data.decode())
    if not isinstance(sent, dict) or not sent.keys() <= _NAMES:
        raise ValueError("no outcome of a job")
    ending = Ending(sent.pop("ending", None))
    for name in _INSTANTS:
        if name in sent:
            sent[name] = datetime.fromisoformat(str(sent[name]))
    for name, value in sent.items():
        if not isinstance(value, _TYPES[name]):
            raise ValueError(f"the outcome of a job has {name} = {value!r:.100}")
    settled = sent.pop("settled", None)
    sequel = None if _OF_SEQUEL.isdisjoint(sent) else _read_sequel(sent, claim)
    # Most jobs have no metadata.
    unique_key, link = (None, None) if claim.metadata is None else (claim.unique_key, claim.link)
    outcome = Outcome(
        ending,
        claim.job_id,
        claim.token,
        claim.queue_name,
        claim.rank,
        concurrency_key=claim.concurrency_key,
        unique_key=unique_key,
        link=link,
        sequel=sequel,
        **sent,
    )
    return outcome, settled


def _read_sequel(sent: dict[str, Any], claim: ClaimedJob) -> Sequel | None:
    """Take what belongs to a sequel out of ``sent``."""
    metadata = sent.pop("metadata", None)
    follow_ups = read_follow_ups(sent.pop("follow_ups", []))
    progress = _read_progress(sent.pop("progress", None))
    ends_checkpoint = sent.pop("ends_checkpoint", False)
    sleeps = tuple(_read_sleep(each, claim) for each in sent.pop("sleeps", []))
    ends_steps = sent.pop("ends_steps", False)
    sequel = None
    if follow_ups or metadata is not None:
        sequel = Sequel(follow_ups, metadata)
    if progress is not None or ends_checkpoint or sleeps or ends_steps:
        sequel = (sequel or Sequel(is_implied=True))._replace(
            progress=progress, ends_checkpoint=ends_checkpoint, sleeps=sleeps, ends_steps=ends_steps
        )
    return sequel


def _read_sleep(sent: Any, claim: ClaimedJob) -> StepRecord:
    match sent:
        case [str(name), int(position), str(data)] if 0 <= position <= MOST_STEPS:
            name = checked_name(name)
            return StepRecord(claim.job_id, claim.token, name, position, True, data)
    raise ValueError(f"the outcome of a job has a sleep that is none: {sent!r:.100}")


def _read_progress(sent: list[Any] | None) -> Progress | None:
    if sent is None:
        return None
    try:
        return Progress.checked(*sent)
    except TypeError as error:
        raise ValueError(f"the outcome of a job has a progress that is none: {error}") from error
