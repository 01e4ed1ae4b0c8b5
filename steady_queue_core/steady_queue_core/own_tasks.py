"""The paths of Steady Queue's own tasks. They are stored with jobs: they stay as they are."""

from __future__ import annotations

#: What does in the background what a user of the admin was allowed to do when asking for it. Nobody
#: else may have it done again, or at another time.
ACT_ON_LIST = "steady_queue_core.admin.background.act_on_list"
#: All of them.
OWN_TASKS = frozenset({ACT_ON_LIST})
