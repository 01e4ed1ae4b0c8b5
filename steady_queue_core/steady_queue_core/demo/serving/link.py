"""OneTimeLink: the secret of a link that logs in once."""

from __future__ import annotations

import secrets
from threading import Lock

from django.utils.crypto import constant_time_compare

#: Random bytes of a token: 256 bits.
SIZE = 32


class OneTimeLink:
    """A token that is good for one use. It is kept in the memory of one process only."""

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(SIZE)
        self._is_used = False
        self._lock = Lock()

    def use(self, token: str) -> bool:
        """Whether this is the token, and nobody has used it before."""
        is_ours = constant_time_compare(token, self.token)
        with self._lock:
            if self._is_used or not is_ours:
                return False
            self._is_used = True
            return True


#: The link of this process.
LINK = OneTimeLink()
