"""Projects with real processes, as other tests make them."""

from __future__ import annotations

from ..processes.conftest import make_project, server_templates, template

__all__ = ["make_project", "server_templates", "template"]
