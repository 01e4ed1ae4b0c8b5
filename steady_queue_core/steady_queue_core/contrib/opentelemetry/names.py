"""Names of spans, attributes and metrics: those of the semantic conventions for messaging, as of
version 1.44, and our own.

They are written out, because the package with the conventions has no stable version.
"""

from __future__ import annotations

SYSTEM = "messaging.system"
STEADY_QUEUE = "steady_queue"
OPERATION_NAME = "messaging.operation.name"
OPERATION_TYPE = "messaging.operation.type"
#: The operations, under which names the conventions know them.
SEND, PROCESS, RECEIVE, SETTLE = "send", "process", "receive", "settle"
DESTINATION = "messaging.destination.name"
MESSAGE_ID = "messaging.message.id"
BODY_SIZE = "messaging.message.body.size"
CONVERSATION_ID = "messaging.message.conversation_id"
BATCH_COUNT = "messaging.batch.message_count"
CLIENT_ID = "messaging.client.id"
CONSUMER_GROUP = "messaging.consumer.group.name"
ERROR_TYPE = "error.type"
NAMESPACE = "db.namespace"

TASK = "steady_queue.task.name"
PRIORITY = "steady_queue.priority"
SCHEDULED_AT = "steady_queue.scheduled_at"
DELAY = "steady_queue.delay_ms"
CONCURRENCY_KEY = "steady_queue.concurrency_key"
RECURRING_KEY = "steady_queue.recurring_key"
DUPLICATE = "steady_queue.duplicate"
ATTEMPT = "steady_queue.attempt"
WAIT = "steady_queue.wait_ms"
OUTCOME = "steady_queue.outcome"
STATE = "steady_queue.process.state"
KIND = "steady_queue.process.kind"

SENT_MESSAGES = "messaging.client.sent.messages"
CONSUMED_MESSAGES = "messaging.client.consumed.messages"
OPERATION_DURATION = "messaging.client.operation.duration"
PROCESS_DURATION = "messaging.process.duration"
DEPTH = "steady_queue.queue.depth"
OLDEST_WAIT = "steady_queue.queue.oldest_wait"
PROCESSES = "steady_queue.processes"

#: Most characters of the message of an error.
LONGEST_MESSAGE = 1000


def span_name(operation: str, destination: str | None) -> str:
    """Return the name of a span; without a destination if there are several."""
    return operation if destination is None else f"{operation} {destination}"


def basic(operation: str, destination: str | None) -> dict[str, str]:
    """Return the attributes that all spans and metrics of an operation have."""
    found = {SYSTEM: STEADY_QUEUE, OPERATION_NAME: operation, OPERATION_TYPE: operation}
    return found if destination is None else {**found, DESTINATION: destination}


def message_of(error: BaseException) -> str:
    """Return the message of an error, which may have a class that cannot tell it."""
    try:
        return str(error)[:LONGEST_MESSAGE]
    except Exception:
        return ""


def error_type(error: BaseException | type[BaseException]) -> str:
    """Return what the conventions call the type of an error: the path of its class."""
    kind = error if isinstance(error, type) else type(error)
    path = f"{kind.__module__}.{kind.__qualname__}"
    return path.removeprefix("builtins.")
