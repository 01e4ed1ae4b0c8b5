"""What nodes of each engine have in common."""

from __future__ import annotations


class DidNotStart(Exception):
    """A node that ended or never answered; the text has its last words."""
