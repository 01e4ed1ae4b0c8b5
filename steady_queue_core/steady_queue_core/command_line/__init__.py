"""The subcommands of ``manage.py steady_queue``."""
