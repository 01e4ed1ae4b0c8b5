"""The spans of time that rows of statistics are for."""

from __future__ import annotations

#: Their lengths in minutes. All time has none.
MINUTE, HOUR, ALL_TIME = 1, 60, 0
#: An hour whose minutes are still there: their sum, beside them.
RECENT_HOUR = -60
#: The length of six hours from midnight, UTC, on; and their sum, beside them.
QUARTER = 6 * HOUR
QUARTER_SUM = -QUARTER
#: Minutes after its end in which processes may store counts of an hour, before it is summed up.
GRACE = 3
#: Minutes for which rows of minutes and of hours are kept; and after which the totals of a process
#: that has stored none since are taken for those of one that has ended.
KEPT = {
    MINUTE: 48 * 60,
    HOUR: 90 * 24 * 60,
    ALL_TIME: 120,
    RECENT_HOUR: 52 * 60,
    QUARTER_SUM: 8 * 24 * 60,
}
