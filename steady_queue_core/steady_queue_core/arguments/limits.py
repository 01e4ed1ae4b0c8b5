"""The size limits of a job's arguments or result."""

from __future__ import annotations

from dataclasses import dataclass

#: No setting allows more: the JSON parser nests on the C stack, and every tagged value costs
#: it two levels, so this leaves room below the interpreter's default recursion limit.
DEEPEST = 200

#: Members of one set, or keys of one dict, that may have the same hash where they are read.
MOST_ALIKE = 100


@dataclass(frozen=True, kw_only=True)
class PayloadLimits:
    """Bounds for one text, checked while it is being built.

    :raises ValueError: a bound is not a positive integer, or ``max_depth`` is over 200
    """

    #: Length of the ASCII JSON text, in bytes.
    max_bytes: int = 1024 * 1024
    #: Containers inside containers: ``[]`` has depth 1, ``[[]]`` depth 2.
    max_depth: int = 64

    def __post_init__(self) -> None:
        for name in ("max_bytes", "max_depth"):
            bound = getattr(self, name)
            if type(bound) is not int or bound < 1:
                raise ValueError(f"{name} must be a positive integer.")
        if self.max_depth > DEEPEST:
            raise ValueError(f"max_depth must not be over {DEEPEST}.")


DEFAULT_LIMITS = PayloadLimits()
