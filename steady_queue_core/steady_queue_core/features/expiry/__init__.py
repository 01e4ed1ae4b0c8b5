"""Expiry: a job that has not started by then never starts."""
