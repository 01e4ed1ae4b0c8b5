"""Where pickles of tasks, which caches may hold, have the options of unique jobs."""

from __future__ import annotations

from .features.unique.options import Unique as Unique
from .features.unique.options import _Given as _Given
