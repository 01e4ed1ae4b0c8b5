"""``pause`` and ``resume``."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError

from ..configuration.queues import name_objection
from ..models import Queue
from ..printable import printable
from .context import Context
from .databases import described
from .exit_codes import DONE
from .subcommand import Subcommand


class Pausing(Subcommand):
    """Queues are paused, or resumed."""

    #: What becomes of a queue.
    past: str

    def add_arguments(self, parser: ArgumentParser) -> None:
        # Not "queues": call_command() would take the option of start for it.
        parser.add_argument(
            "names", nargs="+", type=_queue_name, metavar="QUEUE", help="names of queues"
        )

    def run(self, context: Context) -> int:
        using = context.databases.to_change()
        names = dict.fromkeys(context.options["names"])
        changed = {name: self.switch(Queue(name, using)) for name in names}
        data = [{"queue": name, "changed": found} for name, found in changed.items()]
        lines = [
            f"{printable(name)}: {self.past if found else f'is {self.past} already'}"
            for name, found in changed.items()
        ]
        context.show({**described(using), "action": self.name, "queues": data}, lines)
        return DONE

    def switch(self, queue: Queue) -> bool:
        """Pause or resume a queue; return whether that has changed anything."""
        raise NotImplementedError


class Pause(Pausing):
    """Workers take no jobs from these queues."""

    name = "pause"
    help = "let workers take no jobs from queues"
    past = "paused"

    def switch(self, queue: Queue) -> bool:
        return queue.pause()


class Resume(Pausing):
    """Workers take jobs from these queues again."""

    name = "resume"
    help = "let workers take jobs from paused queues again"
    past = "open"

    def switch(self, queue: Queue) -> bool:
        return queue.resume()


def _queue_name(text: str) -> str:
    objection = name_objection(text)
    if objection:
        raise ArgumentTypeError(f"no queue has the name {text!r}: it {objection}")
    return text
