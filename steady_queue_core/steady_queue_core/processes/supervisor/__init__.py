"""The supervisor: starts and watches the other processes, and rescues the jobs of dead ones."""

from __future__ import annotations
