"""Shop: the project whose admin is served."""

from __future__ import annotations

from typing import Any

from ..project import Project
from .server import Server

#: The name of the only user. There is no password.
USER = "demo"

SETTINGS = """

INSTALLED_APPS += [{apps}]
TASKS = {{
    "default": {{
        "BACKEND": "steady_queue_core.backend.SteadyQueueBackend",
        "QUEUES": [],
        "OPTIONS": {{
            "clear_finished_jobs_after": 600,
            "clear_failed_jobs_after": 1800,
            "queue_limits": {{"*": 200}},
        }},
    }}
}}
STEADY_QUEUE = {{"workers": [{{"queues": "*", "threads": 4}}], "shutdown_timeout": 1}}
"""

#: Those of the running demo alone. The log has no more than two files of a megabyte.
SERVED = """from .settings import *

DEBUG = False
ALLOWED_HOSTS = ["127.0.0.1", "localhost"]
ROOT_URLCONF = "steady_queue_core.demo.serving.urls"
# Browsers send cookies to all ports of a host: those of other projects stay as they are.
SESSION_COOKIE_NAME = "steady_queue_demo_{port}_session"
CSRF_COOKIE_NAME = "steady_queue_demo_{port}_csrf"
LOGGING = {{
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {{
        "file": {{
            "class": "logging.handlers.RotatingFileHandler",
            "filename": BASE_DIR / "web.log",
            "maxBytes": 1_000_000,
            "backupCount": 1,
            "delay": True,
        }},
    }},
    "loggers": {{
        "django": {{"handlers": ["file"], "level": "ERROR"}},
        "django.server": {{"handlers": ["file"], "level": "ERROR", "propagate": False}},
        # Tasks fail here all the time, and as planned.
        "django.tasks": {{"level": "CRITICAL"}},
        "django_tasks": {{"level": "CRITICAL"}},
        "steady_queue.task": {{"level": "CRITICAL"}},
        "steady_queue.worker": {{"level": "ERROR"}},
    }},
}}
"""


class Shop(Project):
    """A project with tasks of a shop, a user, and a past."""

    app = "shop"
    settings = SETTINGS
    settings_module = "mysite.served"

    def __init__(self, server: Server) -> None:
        super().__init__()
        #: What serves its pages.
        self.server = server

    @property
    def tasks(self) -> str:
        return self._text_of("serving", "shop_tasks.py")

    def make(self) -> None:
        super().make()
        text = SERVED.format(port=self.server.server_port)
        (self.folder / "mysite" / "served.py").write_text(text)

    def enter(self) -> None:
        super().enter()
        from django.contrib.auth import get_user_model
        from django.db import connections

        from . import past

        users: Any = get_user_model()._default_manager
        users.create_superuser(USER)
        past.invent()
        connections.close_all()
