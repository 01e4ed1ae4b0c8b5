"""``pause`` and ``resume``."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Sequence

from ..configuration.queues import name_objection
from ..models import Queue
from ..printable import printable
from .context import Context
from .databases import described
from .exit_codes import DONE
from .known_queues import KnownQueues
from .question import confirm
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
        names = list(dict.fromkeys(context.options["names"]))
        self.look_at(context, using, names)
        changed = {name: self.switch(Queue(name, using)) for name in names}
        data = [{"queue": name, "changed": found} for name, found in changed.items()]
        lines = [
            f"{printable(name)}: {self.past if found else f'is {self.past} already'}"
            for name, found in changed.items()
        ]
        context.show({**described(using), "action": self.name, "queues": data}, lines)
        return DONE

    def look_at(self, context: Context, using: str, names: Sequence[str]) -> None:
        """Tell of names that may be misspelt. Raises ``Refusal`` if nothing is to be done."""

    def switch(self, queue: Queue) -> bool:
        """Pause or resume a queue; return whether that has changed anything."""
        raise NotImplementedError


class Pause(Pausing):
    """Workers take no jobs from these queues."""

    name = "pause"
    help = "let workers take no jobs from queues"
    past = "paused"

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--yes", action="store_true", help="do not ask about unknown queues")

    def look_at(self, context: Context, using: str, names: Sequence[str]) -> None:
        # A queue may be paused before its first job: no name is refused.
        if context.options["yes"] or not (unknown := unknown_queues(using, names)):
            return
        verb = "it" if len(unknown) == 1 else "them"
        confirm(context, f"{' '.join(unknown)} Pause {verb} all the same?", "--yes")

    def switch(self, queue: Queue) -> bool:
        return queue.pause()


class Resume(Pausing):
    """Workers take jobs from these queues again."""

    name = "resume"
    help = "let workers take jobs from paused queues again"
    past = "open"

    def look_at(self, context: Context, using: str, names: Sequence[str]) -> None:
        for sentence in unknown_queues(using, names):
            context.note(sentence)

    def switch(self, queue: Queue) -> bool:
        return queue.resume()


def unknown_queues(using: str, names: Sequence[str]) -> list[str]:
    """Return a sentence about each of the names that neither the database nor the project knows."""
    known = KnownQueues(using)
    return [
        f"Nothing knows a queue {name!r}; {known.suggestion(name)}"
        for name in names
        if name not in known
    ]


def _queue_name(text: str) -> str:
    objection = name_objection(text)
    if objection:
        raise ArgumentTypeError(f"no queue has the name {text!r}: it {objection}")
    return text
