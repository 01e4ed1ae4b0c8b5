"""Statistics: what has become of jobs, by minute, queue and task."""
