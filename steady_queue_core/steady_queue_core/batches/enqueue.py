"""Enqueues a whole graph as a new batch."""

from __future__ import annotations

from ..compat import InvalidTask
from ..dialects.database import Database
from ..tasks import current_batch
from .backends import backend_of_graph
from .graph import Graph
from .results import BatchResult
from .rows import create, missing_tables_named, start
from .store import GraphStore
from .transactions import in_transaction_on
from .values import row_values


def enqueue_graph(graph: Graph) -> BatchResult:
    """Store a graph in one transaction, or in the caller's; return its result."""
    backend = backend_of_graph(graph)
    store = GraphStore(graph, backend)
    database = Database.of(backend.database)
    values = row_values(graph.kind, graph.options, backend)

    def insert_all() -> int:
        graph.batch_id = create(database, values, current_batch.current())
        store.insert()
        start(database, graph.batch_id)
        return graph.batch_id

    def insert() -> None:
        with missing_tables_named(database):
            in_transaction_on(database, insert_all)

    store.store_by(insert)
    if graph.batch_id is None:
        raise InvalidTask(
            "Nothing was stored: enqueue() of a middleware returned results without a call of "
            "proceed(). For a chain, group or workflow it has to call it, or to raise an exception."
        )
    return BatchResult.stored(graph.batch_id, backend)
