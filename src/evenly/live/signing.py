"""Keys, and what is signed with them: BLAKE2s with a key. The only home of this rule.

Holders of the key can make and check signatures. A signature made for one use is not valid for another.
"""

from __future__ import annotations

import hashlib
import secrets
from pathlib import Path

from evenly.errors import InputError
from evenly.files import path_text, read_text

KEY_BYTES = 32
MIN_SECRET, MAX_SECRET = 32, 4096  # characters in a file


def new_key() -> bytes:
    """Return a random key to sign with."""
    return secrets.token_bytes(KEY_BYTES)


def signature(key: bytes, message: bytes, *, size: int, use: bytes = b"") -> bytes:
    """Return `size` bytes that only a holder of the key can compute. `use` has at most 8 bytes."""
    return hashlib.blake2s(message, key=key, digest_size=size, person=use).digest()


def read_key(path: Path) -> bytes:
    """Return the key that a file with a secret stands for."""
    secret = read_text(path).strip()
    if not MIN_SECRET <= len(secret) <= MAX_SECRET or not all("!" <= character <= "~" for character in secret):
        raise InputError(
            f"The secret in {path_text(path)} must be {MIN_SECRET} to {MAX_SECRET} printable ASCII characters "
            f"without spaces; it has {len(secret)} characters (openssl rand -hex 32 makes one)."
        )
    return hashlib.blake2s(secret.encode(), digest_size=KEY_BYTES).digest()
