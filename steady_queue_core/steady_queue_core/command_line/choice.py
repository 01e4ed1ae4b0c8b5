"""The choice between starting the queue and a subcommand, without the subcommands themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

#: The parsed option that holds the name of the subcommand.
CHOICE = "subcommand"
START = "start"


def may_name_subcommand(words: Sequence[str]) -> bool:
    """Whether the words of a command line may name a subcommand, or ask for help with one.

    A word without a dash may be the value of an option, too.
    """
    return any(not each.startswith("-") or each in ("-h", "--help") for each in words)


def is_subcommand(options: Mapping[str, Any]) -> bool:
    """Whether these are the options of a subcommand other than ``start``."""
    return options.get(CHOICE) not in (None, START)
