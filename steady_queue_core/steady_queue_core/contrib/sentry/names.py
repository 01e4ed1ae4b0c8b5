"""Names that Sentry has for what happens in a queue, and our own."""

from __future__ import annotations

ORIGIN = "auto.queue.steady_queue"
MECHANISM = "steady_queue"
PUBLISH, PROCESS = "queue.publish", "queue.process"

SYSTEM = "messaging.system"
STEADY_QUEUE = "steady_queue"
MESSAGE_ID = "messaging.message.id"
DESTINATION = "messaging.destination.name"
BODY_SIZE = "messaging.message.body.size"
BATCH_COUNT = "messaging.batch.message_count"
LATENCY = "messaging.message.receive.latency"
RETRIES = "messaging.message.retry.count"

#: The headers of Sentry's trace, and those of a job: its ``baggage`` may be that of OpenTelemetry.
TRACE_HEADERS = {"sentry-trace": "sentry-trace", "baggage": "sentry-baggage"}
#: The header of a run that checks in.
MONITOR_HEADER = "sentry-monitor"
