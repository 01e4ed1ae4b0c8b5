"""Callbacks: the tasks that are enqueued with the outcome of a job."""
