"""Queue limits: how many ready jobs a queue may have before nothing more is enqueued."""
