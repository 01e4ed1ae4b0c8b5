"""The subcommands of ``manage.py steady_queue``.

Each has a module of its own; the others are what they share. ``docs/command-line.md`` says how to
add one.
"""
