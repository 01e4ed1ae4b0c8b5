"""The options of all features that a job keeps."""

from __future__ import annotations

from .callbacks.options import OPTIONS as CALLBACKS
from .delivery.options import OPTIONS as DELIVERY
from .endings.options import OPTIONS as ENDINGS
from .expiry.options import OPTIONS as EXPIRY
from .option import Option
from .retention.options import OPTIONS as RETENTION
from .time_limits.options import OPTIONS as TIME_LIMITS

#: Wrong values are told of in this order.
OPTIONS: tuple[Option, ...] = (
    *ENDINGS,
    *DELIVERY,
    *EXPIRY,
    *RETENTION,
    *TIME_LIMITS,
    *CALLBACKS,
)
BY_NAME = {option.name: option for option in OPTIONS}
#: Those that may not fit a call, and those that backends have, too.
DEMANDING = tuple(option for option in OPTIONS if option.require is not None)
DEFAULTED = tuple(option for option in OPTIONS if option.has_default)
