"""``--reload``: restarts the queue when the project's code changes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.utils import autoreload

COMMAND = "steady_queue"
RESTART = "steady_queue_core.management.restart"


class Reloader:
    """Watches the files of the project with Django's own means, and stops the queue when one has
    changed and the project passes its checks. Until then the old code goes on."""

    def __init__(self, stop: Callable[[], None], say: Callable[[str], object]) -> None:
        self._stop, self._say = stop, say
        self.code_has_changed = False

    def watch(self) -> None:
        """Begin to watch, in a thread."""
        autoreload.file_changed.connect(self._changed)
        watcher = autoreload.get_reloader()
        threading.Thread(
            target=watcher.run,
            args=[threading.main_thread()],
            name="steady-queue-reloader",
            daemon=True,
        ).start()

    def start_anew(self) -> None:
        """Run the same command line in the place of this process; see ``restart``."""
        program, *arguments = map(str, autoreload.get_child_arguments())
        if Path(program) == Path(sys.executable):
            first = next(at for at, each in enumerate(arguments) if each[:2] not in ("-W", "-X"))
            arguments = [*arguments[:first], "-m", RESTART, *arguments[first:]]
        arguments = [program, *arguments]
        sys.stdout.flush()
        sys.stderr.flush()
        if sys.platform == "win32":  # A new program would not take this one's place there.
            os._exit(subprocess.call(arguments))
        os.execv(arguments[0], arguments)

    def _changed(self, sender: Any, file_path: Path, **kwargs: Any) -> bool:
        if not self.code_has_changed:
            problem = self._problem()
            if problem:
                self._say(f"{file_path} has changed, and the old code goes on:\n{problem}")
            else:
                self._say(f"{file_path} has changed: starting anew")
                self.code_has_changed = True
                self._stop()
        return True  # Django itself has nothing to do.

    def _problem(self) -> str:
        """Return what keeps the changed project from starting; empty: nothing."""
        arguments = autoreload.get_child_arguments()
        if COMMAND not in arguments:
            return ""
        checks = [*arguments[: arguments.index(COMMAND)], "check"]
        checked = subprocess.run(checks, capture_output=True, text=True, check=False)
        return checked.stderr.strip() if checked.returncode else ""
