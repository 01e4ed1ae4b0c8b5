"""What becomes of a run that is due while the previous one has not ended."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

#: ``"allow"``: both run; ``"skip"``: it is left out; ``"queue"``: it waits for the end.
Overlap: TypeAlias = Literal["allow", "skip", "queue"]

OVERLAPS: tuple[Overlap, ...] = get_args(Overlap)
