"""``python -m tests.servers COMMAND...`` runs a command beside servers that several runs share.

All kinds that can be had are started, or those that ``--only postgres,mysql`` names. The command
finds them as any run does, by ``STEADY_QUEUE_TEST_POSTGRES`` and so on, and they end with it.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from contextlib import closing, suppress
from types import FrameType

from .fleet import Fleet, Unusable
from .kinds import KINDS

PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main(arguments: list[str]) -> int:
    """Return the status of the command, as a shell does."""
    options = _parser().parse_args(arguments)
    runner = Runner()
    try:
        with closing(Fleet()) as fleet:
            fleet.start(options.only)
            for alias in options.only:
                found = fleet.versions.get(alias) or f"no {KINDS[alias].title}"
                print(f"{found}: {fleet.missing.get(alias) or fleet.origin(alias)}",
                      file=sys.stderr, flush=True)  # fmt: skip
            return runner.run(options.command)
    except Unusable as error:
        print(error, file=sys.stderr)
        return 2


class Runner:
    """Runs a command, and passes signals on to it and all that it has started.

    A terminal's Ctrl-C would reach them without us, but not what a ``kill`` sends to us alone: so
    they are a group of their own, and get each signal once.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        #: A signal that came before the command had begun.
        self._early = 0
        for each in PASSED_ON:
            signal.signal(each, self._pass_on)

    def run(self, command: list[str]) -> int:
        if self._early:
            return 128 + self._early
        try:
            self._process = subprocess.Popen(command, start_new_session=True)
        except OSError as error:
            print(error, file=sys.stderr)
            return 127
        if self._early:
            self._pass_on(self._early, None)
        status = self._process.wait()
        return status if status >= 0 else 128 - status

    def _pass_on(self, signum: int, frame: FrameType | None) -> None:
        if self._process is None:
            self._early = signum
            return
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signum)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.servers", description=(__doc__ or "").replace("``", "")
    )
    parser.add_argument(
        "--only", type=_kinds, default=list(KINDS), metavar="KINDS", help="such as postgres,mysql"
    )
    parser.add_argument("command", nargs=argparse.REMAINDER)
    return parser


def _kinds(text: str) -> list[str]:
    names = text.split(",")
    if unknown := set(names) - KINDS.keys():
        raise argparse.ArgumentTypeError(f"{unknown} are none of {', '.join(KINDS)}")
    return names


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
