"""``completion``: scripts by which shells complete the subcommands and their options."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser
from collections.abc import Mapping

from django.core.management import load_command_class
from django.core.management.base import CommandParser

from .choice import CHOICE
from .context import Context, writing
from .exit_codes import DONE
from .subcommand import Subcommand

#: What completes in the order of the console script alone.
ELSEWHERE = {"demo": ["--keep", "--serve", "--port", "--seconds", "--help"]}


class Completion(Subcommand):
    """A script for one kind of shell, made from the parsers of the subcommands."""

    name = "completion"
    help = "print a script that completes steady-queue in bash, zsh or fish"
    prints_json = False
    takes_backend = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("shell", choices=sorted(SCRIPTS), help="the kind of shell")

    def run(self, context: Context) -> int:
        with writing():
            context.stdout.write(SCRIPTS[context.options["shell"]](words()))
        return DONE


def words() -> dict[str, list[str]]:
    """Return what may follow each subcommand: its options, and the values of its choices."""
    parser = CommandParser()
    # Not imported: the management command itself imports this package.
    load_command_class("steady_queue_core", "steady_queue").add_arguments(parser)
    [choices] = [each.choices for each in parser._actions if each.dest == CHOICE]
    assert isinstance(choices, dict)
    # A former name comes after the present one, and leads to the same parser.
    present = {id(own): name for name, own in reversed(choices.items())}
    return {name: _words(choices[name]) for name in reversed(present.values())} | ELSEWHERE


def _words(parser: ArgumentParser) -> list[str]:
    found: dict[str, None] = {}
    for action in parser._actions:
        if not action.option_strings and action.choices:
            found.update(dict.fromkeys(map(str, action.choices)))
        found.update(dict.fromkeys(each for each in action.option_strings if each[:2] == "--"))
    return list(found)


def bash(found: Mapping[str, list[str]]) -> str:
    """Return the script for bash."""
    return f"""\
_steady_queue() {{
    local words
    if [ "$COMP_CWORD" -eq 1 ]; then
        words={shlex.quote(" ".join(found))}
    else
        case "${{COMP_WORDS[1]}}" in
{_cases("        {name}) words={quoted} ;;", found)}
        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _steady_queue steady-queue
"""


def zsh(found: Mapping[str, list[str]]) -> str:
    """Return the script for zsh."""
    return f"""\
#compdef steady-queue
_steady_queue() {{
    if (( CURRENT == 2 )); then
        compadd -- {" ".join(found)}
        return
    fi
    case "$words[2]" in
{_cases("        {name}) compadd -- {words} ;;", found)}
    esac
    _files
}}
compdef _steady_queue steady-queue
"""


def _cases(form: str, found: Mapping[str, list[str]]) -> str:
    lines = []
    for name, each in found.items():
        text = " ".join(each)
        lines.append(form.format(name=name, words=text, quoted=shlex.quote(text)))
    return "\n".join(lines)


def fish(found: Mapping[str, list[str]]) -> str:
    """Return the script for fish."""
    lines = [_fish("__fish_use_subcommand", f"-f -a {shlex.quote(' '.join(found))}")]
    for name, each in found.items():
        seen = f"'__fish_seen_subcommand_from {name}'"
        lines += [_fish(seen, f"-l {word[2:]}") for word in each if word.startswith("--")]
        values = " ".join(word for word in each if not word.startswith("--"))
        if values:
            lines.append(_fish(seen, f"-f -a {shlex.quote(values)}"))
    return "\n".join(lines) + "\n"


def _fish(condition: str, what: str) -> str:
    return f"complete -c steady-queue -n {condition} {what}"


SCRIPTS = {"bash": bash, "zsh": zsh, "fish": fish}
