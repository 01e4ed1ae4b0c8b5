"""Where pickles, which caches may hold, look for classes: where the release before has them."""

from __future__ import annotations

import sys
from importlib import import_module


def pickled_in(module: str, *classes: type) -> None:
    """Have classes be named in pickles as of ``module``, where the package keeps their names for
    one release."""
    package, _, name = module.rpartition(".")
    # Whoever inspects them finds there what their annotations name.
    sys.modules[module] = sys.modules[classes[0].__module__]
    setattr(import_module(package), name, sys.modules[module])
    for each in classes:
        each.__module__ = module
