"""Fair queues: the jobs of a queue take turns by their keys."""
