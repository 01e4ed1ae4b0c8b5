"""How many calls and files a job passes through: counted, so the same on every machine."""
