"""Database servers for the tests: found by an address, or started for one session of pytest.

``kinds`` lists them. A server's alias in ``DATABASES`` is its name here: ``postgres``, ``mysql`` or
``mariadb``. A test needs a server if it says so by its databases, or by ``@pytest.mark.server``.
"""
