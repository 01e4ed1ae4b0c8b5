"""What attempts store for their jobs while they run, in rows, while their claim is held."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..progress import Progress
from . import tables


class HeldTable(NamedTuple):
    """A table of rows that attempts store."""

    #: The name of the model.
    model: str
    #: The name of the table.
    name: str
    #: The columns that identify a row, and the fields of the model that have these.
    key: tuple[str, ...]
    fields: tuple[str, ...]
    #: The columns with values, beside those of the job and the token.
    columns: tuple[str, ...]
    #: The column of the database's present time.
    time: str


CHECKPOINTS = HeldTable(
    "Checkpoint",
    tables.CHECKPOINTS,
    ("job_id",),
    ("job",),
    ("data", "done", "total", "text"),
    "updated_at",
)
STEPS = HeldTable(
    "Step",
    tables.STEPS,
    ("job_id", "name"),
    ("job", "name"),
    ("name", "position", "is_sleep", "data"),
    "stored_at",
)
#: The columns of a step that is stored once more.
STEP_COLUMNS = ("token", "position", "is_sleep", "data", "stored_at")


class HeldRow(NamedTuple):
    """A row that an attempt stores."""

    table: HeldTable
    job_id: int
    #: The token of the attempt's claim.
    token: int
    #: The values of the table's columns, in their order.
    values: tuple[Any, ...]
    #: The columns to set in a row that exists.
    changed: tuple[str, ...]


class CheckpointChange(NamedTuple):
    """What an attempt stores for its job while it runs."""

    job_id: int
    #: The token of the attempt's claim.
    token: int
    #: The encoded checkpoint; ``None``: the one that is stored stays.
    data: str | None = None
    #: How far the task has come; ``None``: what is stored stays.
    progress: Progress | None = None

    @property
    def changed_columns(self) -> tuple[str, ...]:
        """The columns to set in a row that exists."""
        data = () if self.data is None else ("data",)
        progress = () if self.progress is None else ("done", "total", "text")
        return ("token", "updated_at", *data, *progress)

    @property
    def row(self) -> HeldRow:
        """The row to insert or update while the claim is held."""
        told = self.progress
        progress = (None, None, "") if told is None else (told.done, told.total, told.text)
        values = (self.data, *progress)
        return HeldRow(CHECKPOINTS, self.job_id, self.token, values, self.changed_columns)


class StepRecord(NamedTuple):
    """A step that an attempt has taken, or a sleep that it has begun."""

    job_id: int
    #: The token of the attempt's claim.
    token: int
    #: What the task calls it: no other one of the job has the name.
    name: str
    #: How many steps and sleeps of the attempt come before it.
    position: int
    is_sleep: bool
    #: The encoded value of the step, or when the sleep is over.
    data: str

    @property
    def row(self) -> HeldRow:
        """The row to insert or update while the claim is held."""
        values = (self.name, self.position, self.is_sleep, self.data)
        return HeldRow(STEPS, self.job_id, self.token, values, STEP_COLUMNS)
