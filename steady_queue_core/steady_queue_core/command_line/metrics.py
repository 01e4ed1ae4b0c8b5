"""``metrics``: what Prometheus reads, on the standard output."""

from __future__ import annotations

from argparse import ArgumentParser

from ..configuration.errors import suggest
from ..errors import PrometheusMissing
from ..metrics import known_names, metrics_text
from .context import Context, Output, writing
from .exit_codes import DONE, NOT_FOUND, Refusal
from .subcommand import Subcommand


class Metrics(Subcommand):
    """The text of the metrics, for the textfile collector of the node exporter."""

    name = "metrics"
    help = "print metrics in the text format of Prometheus"
    prints_json = False
    takes_backend = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "names", nargs="*", metavar="NAME", help="only this metric, without its _total"
        )

    def run(self, context: Context) -> int:
        names = context.options["names"]
        try:
            known = known_names() if names else frozenset()
            text, _ = metrics_text(names=names)
        except PrometheusMissing as error:
            raise Refusal(str(error)) from error
        unknown = [name for name in names if name not in known]
        if unknown:
            listed = " ".join(f"There is no metric {e!r}; {suggest(e, known)}" for e in unknown)
            raise Refusal(listed, NOT_FOUND)
        with writing():
            _write(context.stdout, text.decode())
        return DONE


def _write(stream: Output, text: str) -> None:
    try:
        stream.write(text)
    except UnicodeEncodeError:  # A stream that takes ASCII only.
        stream.write("".join(map(_escaped, text)))


def _escaped(character: str) -> str:
    """Return a character in ASCII, as what Prometheus reads as its escape."""
    if character.isascii():
        return character
    return "\\" + character.encode("ascii", "backslashreplace").decode()
