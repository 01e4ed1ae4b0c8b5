"""The codes of findings, in the order of how much they explain, among those of one severity."""

from __future__ import annotations

#: Nothing else can be examined while there is one of these.
FATAL = ("settings-invalid", "dialect-missing", "database-unreachable", "migrations-missing")

OF_QUEUES = (
    "check-error",
    "index-missing",
    "process-none",
    "queue-paused",
    "queue-unserved",
    "dispatcher-missing",
    "scheduler-missing",
    "claim-stale",
    "claim-orphaned",
    "limit-stuck",
    "schedule-task-missing",
    "schedule-not-read",
    "dispatcher-late",
    "scheduler-late",
    "supervisor-missing",
    "process-stale",
    "limit-miscounted",
    "transaction-old",
    "transaction-prepared",
    "replication-slot",
    "history-long",
    "connections-few",
    "index-invalid",
    "autovacuum-off",
    "table-bloat",
    "wal-large",
    "journal-not-wal",
    "queue-slow",
    "claim-long",
    "failures-many",
    "clock-skew",
    "versions-differ",
    "retention-undone",
    "shutdown-timeout-short",
    "check-warning",
    "not-examined",
)

OF_JOBS = (
    "job-unknown",
    "job-elsewhere",
    "job-stateless",
    "job-damaged",
    "job-failed",
    "job-cancelled",
    "job-expired",
    "job-task-unknown",
    "job-overdue",
    "job-blocked",
    "job-rate-limited",
    "job-retry",
    "job-scheduled",
    "job-waiting",
    "job-running",
    "job-ready",
    "job-finished",
)

CODES = (*FATAL, *OF_JOBS[:8], *OF_QUEUES, *OF_JOBS[8:])
