"""One file of a backup: compressed, hashed or sealed frame by frame, so that it is checked while it is read.

Layout, format 1, numbers in network order::

    header   8 bytes "GWPART1\\n", 1 byte mode (P plain, S sealed), 8 bytes id of the key (zeros when plain), 16 bytes salt
    frame    4 bytes length of the payload, the highest bit set in the last frame; 1 byte codec (0 as it is, 1 zlib);
             the payload; a tag that authenticates it

A plain frame's tag is the SHA-256 of everything before it that says what it is: header, name of the part, number of the
frame, length, codec and payload. A sealed frame's payload is encrypted by AES-256-GCM (NIST SP 800-38D) under a key that
HKDF-SHA256 (RFC 5869) derives for this part from the backup key, its salt and its name; the nonce is the frame's number,
and the same facts are authenticated with it. So a byte that differs, a frame that is missing, twice or in another place, a
part under another's name, and one that was cut short are all found, and no frame is used before it was checked.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from backups.errors import BackupDamaged, BackupRefused

CHUNK = 1 << 20
"""Bytes of content in one frame, before compression."""
_MAGIC = b"GWPART1\n"
_HEADER = 33
_FRAME = struct.Struct(">IB")
_LAST = 1 << 31
_RAW, _ZLIB = 0, 1
_LEVEL = 3  # of zlib: beyond it, rows get hardly smaller and take twice the time
_PLAIN_TAG, _SEALED_TAG = 32, 16


@dataclass(frozen=True, slots=True)
class BackupKey:
    """A key that seals backups: 32 random bytes, from which all others are derived."""

    master: bytes

    @classmethod
    def from_text(cls, text: str) -> BackupKey:
        """Read a key as settings hold it: 32 bytes in url-safe Base64. Raises ValueError."""
        master = base64.urlsafe_b64decode(text.encode("ascii"))
        if len(master) != 32:
            raise ValueError("a backup key has 32 bytes")
        return cls(master)

    @property
    def id(self) -> bytes:
        """8 bytes that tell which key sealed something, and nothing about the key."""
        return self.derived(b"id", b"")[:8]

    def derived(self, purpose: bytes, salt: bytes) -> bytes:
        """Return 32 bytes for one purpose."""
        kdf = HKDF(algorithm=SHA256(), length=32, salt=salt, info=b"groundwork.backup.v1:" + purpose)
        return kdf.derive(self.master)

    def hidden(self, sha256: str) -> str:
        """Return a name for content in 64 hex digits, which shows nobody without the key what the content is."""
        return hmac.new(self.derived(b"names", b""), sha256.encode(), "sha256").hexdigest()

    def __repr__(self) -> str:
        return "BackupKey(…)"


@dataclass(frozen=True, slots=True)
class Written:
    """What was written.

    Attributes:
        size: of the file, in bytes.
        sha256: of the file, in hex.
        content_size: of what is in it, in bytes.
        content_sha256: of what is in it, in hex.
    """

    size: int
    sha256: str
    content_size: int
    content_sha256: str


class PartWriter:
    """Writes one part; ``close`` ends it, and without it what was written counts for nothing."""

    def __init__(self, out: BinaryIO, name: str, key: BackupKey | None) -> None:
        """Begin a part.

        Args:
            out: an empty file.
            name: of the part, which a reader has to know too.
            key: seals it; None writes it plain.
        """
        self._out, self._name = out, name.encode()
        self._digest, self._content = hashlib.sha256(), hashlib.sha256()
        self._size = self._content_size = self._number = 0
        self._waiting = bytearray()
        salt = secrets.token_bytes(16)
        self._header = _MAGIC + (b"S" + key.id if key else b"P" + bytes(8)) + salt
        self._cipher = _cipher(key, salt, self._name) if key else None
        self._put(self._header)

    @property
    def size(self) -> int:
        """Bytes of the file so far."""
        return self._size

    def write(self, content: bytes) -> None:
        """Add content, in pieces of any size."""
        self._waiting += content
        while len(self._waiting) > CHUNK:
            self._frame(bytes(self._waiting[:CHUNK]), is_last=False)
            del self._waiting[:CHUNK]

    def close(self) -> Written:
        """Write the last frame, and say what was written; the file stays open."""
        self._frame(bytes(self._waiting), is_last=True)
        return Written(self._size, self._digest.hexdigest(), self._content_size, self._content.hexdigest())

    def _frame(self, content: bytes, *, is_last: bool) -> None:
        self._content.update(content)
        self._content_size += len(content)
        small = zlib.compress(content, _LEVEL)
        codec, payload = (_ZLIB, small) if len(small) < len(content) else (_RAW, content)
        head = _FRAME.pack(len(payload) | (_LAST if is_last else 0), codec)
        about = _about(self._header, self._name, self._number, head)
        if self._cipher:
            sealed = self._cipher.encrypt(_nonce(self._number), payload, about)
        else:
            sealed = payload + hashlib.sha256(about + payload).digest()
        self._put(head + sealed)
        self._number += 1

    def _put(self, written: bytes) -> None:
        self._out.write(written)
        self._digest.update(written)
        self._size += len(written)


def part_write(path: Path, name: str, key: BackupKey | None, content: Iterable[bytes]) -> Written:
    """Write a whole part; arguments as for ``PartWriter``."""
    with path.open("wb") as out:
        writer = PartWriter(out, name, key)
        for piece in content:
            writer.write(piece)
        return writer.close()


def part_read(stream: BinaryIO, name: str, keys: Sequence[BackupKey]) -> Iterator[bytes]:
    """Yield what is in a part, at most ``CHUNK`` bytes at a time, each checked before.

    Args:
        stream: at its beginning.
        name: as it was written under.
        keys: of this installation; one of them has to be the one that sealed it.

    Raises:
        BackupDamaged: something differs from what was written; content that was yielded before was right.
        BackupRefused: no key fits.
    """
    header = stream.read(_HEADER)
    if len(header) != _HEADER or not header.startswith(_MAGIC) or header[8:9] not in (b"P", b"S"):
        raise BackupDamaged(name, "this isn't a part of a backup")
    cipher = None
    if header[8:9] == b"S":
        cipher = _cipher(_key_of(header, name, keys), header[17:], name.encode())
    number, is_last = 0, False
    while not is_last:
        head = stream.read(_FRAME.size)
        if len(head) != _FRAME.size:
            raise BackupDamaged(name, "it was cut short")
        length, codec = _FRAME.unpack(head)
        is_last, length = bool(length & _LAST), length & ~_LAST
        if length > CHUNK or codec not in (_RAW, _ZLIB):
            raise BackupDamaged(name, f"frame {number} is damaged")
        sealed = stream.read(length + (_SEALED_TAG if cipher else _PLAIN_TAG))
        about = _about(header, name.encode(), number, head)
        yield _inflated(_opened(cipher, sealed, length, about, number, name), codec, name, number)
        number += 1
    if stream.read(1):
        raise BackupDamaged(name, "more follows its end")


def _key_of(header: bytes, name: str, keys: Sequence[BackupKey]) -> BackupKey:
    for key in keys:
        if key.id == header[9:17]:
            return key
    if not keys:
        raise BackupRefused(
            f"{name} is encrypted, and this server has no backup key. Set GROUNDWORK_BACKUP_KEY to the key it was "
            "written with."
        )
    raise BackupRefused(
        f"{name} was encrypted with another key, or is damaged. Set GROUNDWORK_BACKUP_KEY to the key it was written with."
    )


def _opened(cipher: AESGCM | None, sealed: bytes, length: int, about: bytes, number: int, name: str) -> bytes:
    if cipher:
        try:
            return cipher.decrypt(_nonce(number), sealed, about)
        except InvalidTag:
            raise BackupDamaged(name, f"frame {number} is damaged") from None
    payload, tag = sealed[:length], sealed[length:]
    if not hmac.compare_digest(hashlib.sha256(about + payload).digest(), tag):
        raise BackupDamaged(name, f"frame {number} is damaged")
    return payload


def _inflated(payload: bytes, codec: int, name: str, number: int) -> bytes:
    if codec == _RAW:
        return payload
    inflater = zlib.decompressobj()
    try:
        content = inflater.decompress(payload, CHUNK + 1)
    except zlib.error:
        content = b""
    # A frame of ours is never more: who made one that is does not fill the memory.
    if not inflater.eof or inflater.unused_data or len(content) > CHUNK:
        raise BackupDamaged(name, f"frame {number} can't be decompressed")
    return content


def _cipher(key: BackupKey, salt: bytes, name: bytes) -> AESGCM:
    return AESGCM(key.derived(b"part:" + name, salt))


def _nonce(number: int) -> bytes:
    return number.to_bytes(12, "big")


def _about(header: bytes, name: bytes, number: int, head: bytes) -> bytes:
    return header + len(name).to_bytes(4, "big") + name + number.to_bytes(8, "big") + head
