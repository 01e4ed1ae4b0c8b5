"""The probe: answers over HTTP whether the queue lives, is ready, and how it does."""
