"""The SQL of each dialect, as a reader sees it.

``tests/golden_sql/<database>/<operation>.sql`` holds every statement that an operation sends, in
order, with the transactions around it. ``make sql`` writes the files anew, so that a change of the
SQL shows in its diff; the tests here fail as long as they differ from what is sent. MariaDB is sent
nearly what MySQL is: ``tests/golden_sql/mariadb/<operation>.diff`` shows where not.

The files are the same for all versions of a server, of its drivers and of Django that are tested.
Ids, tokens and times are replaced by ``:job_1``, ``:token`` and ``:time``. Left out is what Django
sends when it opens a connection, and what a transaction of Django's own sends on MySQL to be READ
COMMITTED, which depends on the driver.
"""
