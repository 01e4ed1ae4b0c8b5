"""``python -m steady_queue_core.management.restart COMMAND LINE``, after a change of the code.

If the queue does not start, shows the reason and waits for another change: the code may have
changed again since it passed the checks.
"""

from __future__ import annotations

import os
import runpy
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

from django.utils import autoreload

from ..printable import printable_lines

#: Seconds between two looks at the files.
INTERVAL = 0.5


def main(arguments: list[str]) -> None:
    """Run ``arguments``, a script or ``-m`` and a module, and what these are given."""
    again = [*map(str, autoreload.get_child_arguments())]
    try:
        _run(arguments)
    except SystemExit as ending:
        if not ending.code:
            raise
        _await_change(ending)
    except Exception as error:
        sys.stderr.write(printable_lines("".join(traceback.format_exception(error))))
        _await_change(error)
    else:
        return
    os.execv(again[0], again)


def _run(arguments: list[str]) -> None:
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        sys.path[0] = str(Path(arguments[0]).resolve().parent)
        runpy.run_path(arguments[0], run_name="__main__")


def _await_change(error: BaseException) -> None:
    files = {*autoreload.iter_all_python_module_files(), *_files_of(error)}
    # A module that was not found may yet come.
    watched = files | {file.parent for file in _files_of(error)}
    before = _times(watched)
    sys.stderr.write("The queue does not start: waiting for a change of the code.\n")
    sys.stderr.flush()
    while _times(watched) == before:
        time.sleep(INTERVAL)


def _times(watched: set[Path]) -> dict[Path, float]:
    return {path: path.stat().st_mtime for path in watched if path.exists()}


def _files_of(error: BaseException | None) -> Iterator[Path]:
    """Yield the files that an error came through, with those that led to it."""
    while error is not None:
        frames = traceback.extract_tb(error.__traceback__)
        for name in (*(frame.filename for frame in frames), getattr(error, "filename", None)):
            if name and Path(name).is_file():
                yield Path(name).resolve()
        error = error.__cause__ or error.__context__


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit(0)
