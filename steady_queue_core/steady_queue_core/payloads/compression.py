"""Compression with zlib, and decompression that never takes more memory than the limit."""

from __future__ import annotations

import zlib

from .errors import PayloadCompressionError


def compress(data: bytes) -> bytes:
    return zlib.compress(data)


def decompress(data: bytes, *, limit: int) -> bytes:
    """Return the decompressed ``data``, of at most ``limit`` bytes.

    Raises ``PayloadCompressionError`` if there is more, without decompressing the rest.
    """
    stream = zlib.decompressobj()
    try:
        found = stream.decompress(data, limit + 1)
    except zlib.error:
        raise _damaged() from None
    if len(found) > limit:
        raise PayloadCompressionError(
            "The stored payload decompresses to more than the limit, max_payload_bytes: "
            f"{limit:,} bytes."
        )
    if not stream.eof or stream.unused_data:
        raise _damaged()
    return found


def _damaged() -> PayloadCompressionError:
    return PayloadCompressionError("The stored payload is damaged: it cannot be decompressed.")
