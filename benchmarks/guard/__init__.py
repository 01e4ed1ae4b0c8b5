"""Does a job still cost what it did when the figures were stored last?"""
