"""The names of the tables, for dialects that write their own statements.

The models take their names from here, so a dialect's SQL and the migrations cannot differ.
"""

from __future__ import annotations

JOBS = "steady_queue_jobs"
READY = "steady_queue_ready_executions"
SCHEDULED = "steady_queue_scheduled_executions"
BLOCKED = "steady_queue_blocked_executions"
WAITING = "steady_queue_waiting_executions"
CLAIMED = "steady_queue_claimed_executions"
FAILED = "steady_queue_failed_executions"
SEMAPHORES = "steady_queue_semaphores"
PERMITS = "steady_queue_permits"
RETENTIONS = "steady_queue_retentions"
CHECKPOINTS = "steady_queue_checkpoints"
STEPS = "steady_queue_steps"
BATCHES = "steady_queue_batches"
MEMBERS = "steady_queue_batch_members"
DEPENDENCIES = "steady_queue_dependencies"
TURNS = "steady_queue_turns"
UNIQUE_KEYS = "steady_queue_unique_keys"
SHARES = "steady_queue_shares"
RATES = "steady_queue_rates"
STATISTICS = "steady_queue_statistics"
SAMPLES = "steady_queue_samples"
PAUSES = "steady_queue_pauses"
PROCESSES = "steady_queue_processes"
PROCESS_ENDS = "steady_queue_process_ends"
RECURRING_TASKS = "steady_queue_recurring_tasks"
RECURRING_EXECUTIONS = "steady_queue_recurring_executions"
