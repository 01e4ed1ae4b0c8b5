"""Starting, observing and ending the worker processes of a competitor."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

GRACE = 5.0
"""Seconds between the request to stop and the end."""


class Tree:
    """The processes that some commands start, and all their descendants.

    Each command gets a session of its own, so that whatever it leaves behind can be found and
    ended, and nothing else.
    """

    def __init__(
        self,
        commands: list[list[str]],
        *,
        directory: Path,
        environment: Mapping[str, str],
        log: Path,
    ) -> None:
        self.started_ns = time.monotonic_ns()
        self.roots: list[subprocess.Popen[bytes]] = []
        self.log = log
        try:
            with log.open("ab") as output:
                for command in commands:
                    self.roots.append(
                        subprocess.Popen(
                            command,
                            cwd=directory,
                            env=dict(environment),
                            stdin=subprocess.DEVNULL,
                            stdout=output,
                            stderr=subprocess.STDOUT,
                            start_new_session=True,
                        )
                    )
        except BaseException:
            self.stop()
            raise

    def __enter__(self) -> Tree:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def alive(self) -> bool:
        """Say whether every command still runs."""
        return all(root.poll() is None for root in self.roots)

    def pids(self) -> list[int]:
        """Return the living processes: those of the commands' sessions, and their descendants."""
        sessions = {root.pid for root in self.roots}
        found: set[int] = set()
        parents: dict[int, int] = {}
        for pid, parent, session, state in _all_processes():
            if state == "Z":
                continue
            parents[pid] = parent
            if session in sessions:
                found.add(pid)
        grown = True
        while grown:
            more = {pid for pid, parent in parents.items() if parent in found} - found
            found |= more
            grown = bool(more)
        return sorted(found)

    def cpu_seconds(self) -> float:
        """Return the CPU time of the living processes so far."""
        return sum(_cpu_seconds(pid) for pid in self.pids())

    def memory(self) -> int:
        """Return the memory of the tree in bytes, shared pages counted once (PSS)."""
        return sum(_pss(pid) for pid in self.pids())

    def pause(self) -> None:
        """Stop the living processes where they are."""
        self._send(signal.SIGSTOP)

    def resume(self) -> None:
        """Let them go on."""
        self._send(signal.SIGCONT)

    def _send(self, number: signal.Signals) -> None:
        for pid in self.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def stop(self) -> None:
        """Ask the commands to stop, then kill the rest."""
        members = set(self.pids())
        for root in self.roots:
            if root.poll() is None:
                root.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + GRACE
        while (left := self._left(members)) and time.monotonic() < deadline:
            for root in self.roots:
                root.poll()
            time.sleep(0.02)
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for root in self.roots:
            root.wait(timeout=GRACE)

    def _left(self, members: set[int]) -> set[int]:
        """Return the live processes of the tree, including orphans among ``members``."""
        living = {pid for pid, _, _, state in _all_processes() if state != "Z"}
        return (members & living) | set(self.pids())

    def last_words(self, lines: int = 12) -> str:
        """Return the last lines of the processes' output."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


def _all_processes() -> list[tuple[int, int, int, str]]:
    """Return pid, parent, session and state of every process."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            stat = (entry / "stat").read_text()
        except OSError:
            continue
        fields = stat[stat.rindex(")") + 2 :].split()
        found.append((int(entry.name), int(fields[1]), int(fields[3]), fields[0]))
    return found


def _cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process: to the nanosecond where the kernel keeps it."""
    nanoseconds = 0
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            nanoseconds += int((task / "schedstat").read_text().split()[0])
    except (OSError, IndexError):
        return _cpu_ticks(pid)
    return nanoseconds / 1e9


def _cpu_ticks(pid: int) -> float:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0.0
    fields = stat[stat.rindex(")") + 2 :].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _pss(pid: int) -> int:
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0
