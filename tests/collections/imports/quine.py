"""A ZIP archive that holds itself, bit for bit, so that whoever unpacks what is inside never comes to an end.

DEFLATE is a language of two instructions here: L prints the bytes after it (a stored block), R repeats what was printed
last (a block of one match). After R. Cox, "Zip Files All The Way Down" (research.swtch.com/zip).
"""

from __future__ import annotations

import struct
import zlib

NAME = b"endless/again/endless.zip"  # so long that R of its header takes exactly five bytes
_LENGTHS = (3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115)
_DISTANCES = (1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129)


def zip_quine() -> bytes:
    """Return the archive: the checksum in it is the one of all its bytes, its own included."""
    plain = _built(0)
    base = zlib.crc32(plain)
    # A CRC is affine over the bits: solve (A + 1) c = base, where column n of A is what bit n changes.
    rows = [(zlib.crc32(_built(1 << bit)) ^ base ^ 1 << bit, 1 << bit) for bit in range(32)]
    wanted, found = base, 0
    for bit in range(31, -1, -1):
        pivot = next((row for row in rows if row[0] >> bit & 1), None)
        if pivot is None:
            if wanted >> bit & 1:
                raise ArithmeticError("no checksum fits: take another name")
            continue
        rows = [
            (row[0] ^ pivot[0], row[1] ^ pivot[1]) if row[0] >> bit & 1 else row
            for row in rows
            if row is not pivot
        ]
        if wanted >> bit & 1:
            wanted, found = wanted ^ pivot[0], found ^ pivot[1]
    return _built(found)


def _built(crc: int) -> bytes:
    size = packed = 0
    while True:  # the sizes stand in the headers, and do not change their lengths
        head = _head(crc, packed, size)
        body = _program(head, _tail(crc, packed, size, len(head)))
        tail = _tail(crc, packed, size, len(head))
        whole = head + body + tail
        if (packed, size) == (len(body), len(whole)):
            return whole
        packed, size = len(body), len(whole)


def _program(head: bytes, tail: bytes) -> bytes:
    """Return the instructions that print head, themselves and tail."""
    l_head, l_both = _print(len(head)), _print(len(head) + 10)
    r_both, r20 = _repeat(len(head) + 10, 40), _repeat(20, 40)
    l0, l5, l20 = _print(0), _print(5), _print(20)
    end = _repeat(len(tail) + 6, 48, is_last=True) + tail
    return b"".join(
        [
            l_head,
            head,
            l_both,
            l_head,
            head,
            l_both,
            r_both,
            l5,
            r_both,
            l5,
            l5,
            l20,
            r_both,
            l5,
            l5,
            l20,
            r20,
            l20,
            r20,
            l20,
            r20,
            l20,
            r20,
            l20,
            r20,
            l0,
            l0,
            _print(len(end)),
            r20,
            l0,
            l0,
            _print(len(end)),
            end,
            end[: -len(tail)],
        ]
    )


def _print(count: int) -> bytes:
    return struct.pack("<BHH", 0, count, count ^ 0xFFFF)


def _repeat(count: int, bits: int, *, is_last: bool = False) -> bytes:
    """Return blocks with fixed codes that repeat the last ``count`` bytes once, so many bits long in all."""
    matches = [count // 2, count // 2] if count == 20 else [count]
    out = "010"  # a block with fixed codes, not the last one
    for length in matches:
        code = max(n for n, least in enumerate(_LENGTHS) if least <= length)
        extra = max(0, code // 4 - 1)
        out += f"{code + 1:07b}" + _lsb(length - _LENGTHS[code], extra)
        far = max(n for n, least in enumerate(_DISTANCES) if least <= count)
        out += f"{far:05b}" + _lsb(count - _DISTANCES[far], max(0, far // 2 - 1))
    out += "0" * 7  # end of block
    if is_last:
        out += "110" + "0" * 7
    elif len(out) + 10 == bits:
        out += "010" + "0" * 7  # an empty block fills up
    out = out.ljust(bits, "0")
    if len(out) != bits:
        raise ArithmeticError(f"{count} bytes take {len(out)} bits, not {bits}: take another name")
    return int(out[::-1], 2).to_bytes(bits // 8, "little")


def _lsb(value: int, width: int) -> str:
    return f"{value:0{width}b}"[::-1] if width else ""


def _head(crc: int, packed: int, size: int) -> bytes:
    return struct.pack("<4s5H3I2H", b"PK\x03\x04", 20, 0, 8, 0, 33, crc, packed, size, len(NAME), 0) + NAME


def _tail(crc: int, packed: int, size: int, head: int) -> bytes:
    entry = (
        struct.pack(
            "<4s6H3I5H2I", b"PK\x01\x02", 20, 20, 0, 8, 0, 33, crc, packed, size, len(NAME), 0, 0, 0, 0, 0, 0
        )
        + NAME
    )
    return entry + struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 1, 1, len(entry), head + packed, 0)
