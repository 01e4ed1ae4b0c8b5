"""The fault sweep: one of several jobs, runs or calls goes wrong at each stage, in each way, on
each database.

``python -m tests.faults`` runs every cell and prints the table; the tests run what a merge needs.
The judge looks from outside: at the database, the effect log and the list of processes.
"""
