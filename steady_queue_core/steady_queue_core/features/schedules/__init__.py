"""Schedules: for which of their times a job was enqueued."""
