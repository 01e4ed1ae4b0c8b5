"""The options of all features that a job keeps."""

from __future__ import annotations

from . import callbacks, delivery, endings, expiry, retention, time_limits
from .option import Option

#: Wrong values are told of in this order.
OPTIONS: tuple[Option, ...] = (
    *endings.OPTIONS,
    *delivery.OPTIONS,
    *expiry.OPTIONS,
    *retention.OPTIONS,
    *time_limits.OPTIONS,
    *callbacks.OPTIONS,
)
BY_NAME = {option.name: option for option in OPTIONS}
#: Those that may not fit a call, and those that backends have, too.
DEMANDING = tuple(option for option in OPTIONS if option.require is not None)
DEFAULTED = tuple(option for option in OPTIONS if option.has_default)
