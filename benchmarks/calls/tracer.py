"""Counts the calls of functions by thread, and notes how deep in this project's own they are."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from types import CodeType, FrameType
from typing import Any

OWN = "/steady_queue_"
"""What the paths of this project's files have in them, and no others."""
STATEMENTS = frozenset({"execute", "executemany"})
"""The functions of drivers that take a statement."""
DRIVERS = ("/psycopg/", "/mysql/connector/", "/MySQLdb/")


class Tracer:
    """Counts from ``with`` on what all threads call, functions in C included."""

    def __init__(self, *landmarks: CodeType) -> None:
        self.calls: dict[int, Counter[object]] = defaultdict(Counter)
        """By the identifier of the thread: functions, and how often they were called."""
        self.paths: dict[int, dict[str, Sequence[CodeType]]] = defaultdict(dict)
        """By thread: the own functions on the way to its deepest statement, and to landmarks."""
        self._landmarks = set(landmarks)

    def __enter__(self) -> Tracer:
        threading.setprofile_all_threads(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        threading.setprofile_all_threads(None)

    def _note(self, frame: FrameType, event: str, arg: Any) -> None:
        if event == "call":
            code = frame.f_code
            self.calls[threading.get_ident()][code] += 1
            if code in self._landmarks:
                self._note_path(frame, code.co_name)
            elif code.co_name in STATEMENTS and any(d in code.co_filename for d in DRIVERS):
                self._note_path(frame, "statement")
        elif event == "c_call":
            self.calls[threading.get_ident()][arg.__qualname__] += 1
            if arg.__name__ in STATEMENTS:
                self._note_path(frame, "statement")

    def _note_path(self, frame: FrameType, name: str) -> None:
        path = [each for each in _codes(frame) if is_own(each)]
        paths = self.paths[threading.get_ident()]
        if name not in paths or len(path) > len(paths[name]):
            paths[name] = path


def is_own(function: object) -> bool:
    """Say whether a function is one of this project."""
    return isinstance(function, CodeType) and OWN in function.co_filename


def _codes(frame: FrameType | None) -> Iterator[CodeType]:
    while frame is not None:
        yield frame.f_code
        frame = frame.f_back
