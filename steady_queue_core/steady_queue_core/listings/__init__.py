"""What the queue holds, for the admin and the command line, at a cost that does not grow."""
