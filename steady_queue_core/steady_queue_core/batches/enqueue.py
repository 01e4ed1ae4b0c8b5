"""Enqueues a whole graph as a new batch."""

from __future__ import annotations

from ..dialects.database import Database
from ..tasks import current_batch
from .graph import Graph
from .results import BatchResult
from .rows import create, missing_tables_named, start
from .store import GraphStore, storing_backend, transaction_on, values_of


def enqueue_graph(graph: Graph) -> BatchResult:
    """Store a graph in one transaction, or in the caller's; return its result."""
    backend = storing_backend(graph)
    store = GraphStore(graph, backend)
    database = Database.of(backend.database)
    with missing_tables_named(database), transaction_on(database):
        graph.batch_id = create(database, values_of(graph, backend), current_batch.current())
        store.insert()
        start(database, graph.batch_id)
    return BatchResult.stored(graph.batch_id, backend)
