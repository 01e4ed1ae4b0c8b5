"""Retention: how long a job that has ended is kept, if its task or its call says so itself."""
