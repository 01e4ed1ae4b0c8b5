"""The errors of encoding and decoding arguments."""

from __future__ import annotations


class TaskArgumentError(TypeError, ValueError):
    """A value cannot be stored; the message says which, why, and what to pass instead.

    Both a ``TypeError`` and a ``ValueError``, because it stands for either: a lambda has the
    wrong type, a NaN the wrong value.
    """

    #: Whether it stands for the result of work that is done, which another attempt would repeat.
    is_of_result = False


class DeserializationError(Exception):
    """Stored text cannot be turned back into the values it stands for.

    The text was damaged or tampered with, or a model instance it refers to is gone.
    """
