"""Take from this process, for ever, all it does not need to compute: files, network, processes, signals, new code.

A seccomp filter (kernel documentation, ``userspace-api/seccomp_filter``) lets the calls below pass and answers all others with
"Operation not permitted". Runs inside the worker; imports the standard library only.
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import struct
import sys

_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _MODE_FILTER = 1, 38, 22, 2
_SIGKILL = 9
_ALLOW, _KILL, _REFUSE = 0x7FFF0000, 0x80000000, 0x00050000 | 1  # SECCOMP_RET_ERRNO | EPERM
_LOAD, _EQUAL, _ABOVE, _SET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # BPF instructions
_NUMBER, _ARCHITECTURE, _PROTECTION = (
    0,
    4,
    32,
)  # Offsets in struct seccomp_data; the last is the third argument.
_EXECUTABLE = 4  # PROT_EXEC
_X32 = 0x40000000  # The other numbering of system calls on x86-64.

# By machine: its number in the audit interface, the calls that pass, those that pass unless they make memory executable.
_MACHINES: dict[str, tuple[int, dict[str, int], dict[str, int]]] = {
    "x86_64": (
        0xC000003E,
        {
            "read": 0,
            "write": 1,
            "munmap": 11,
            "brk": 12,
            "rt_sigaction": 13,
            "rt_sigprocmask": 14,
            "rt_sigreturn": 15,
            "sched_yield": 24,
            "mremap": 25,
            "madvise": 28,
            "setitimer": 38,
            "getpid": 39,
            "sendto": 44,
            "recvfrom": 45,
            "exit": 60,
            "gettimeofday": 96,
            "sigaltstack": 131,
            "gettid": 186,
            "futex": 202,
            "restart_syscall": 219,
            "clock_gettime": 228,
            "exit_group": 231,
        },
        {"mmap": 9, "mprotect": 10},
    ),
    "aarch64": (
        0xC00000B7,
        {
            "read": 63,
            "write": 64,
            "exit": 93,
            "exit_group": 94,
            "futex": 98,
            "setitimer": 103,
            "clock_gettime": 113,
            "sched_yield": 124,
            "restart_syscall": 128,
            "sigaltstack": 132,
            "rt_sigaction": 134,
            "rt_sigprocmask": 135,
            "rt_sigreturn": 139,
            "gettimeofday": 169,
            "getpid": 172,
            "gettid": 178,
            "sendto": 206,
            "recvfrom": 207,
            "brk": 214,
            "munmap": 215,
            "mremap": 216,
            "madvise": 233,
        },
        {"mmap": 222, "mprotect": 226},
    ),
}


def filter_bytes(machine: str) -> bytes:
    """Return the filter as an array of ``struct sock_filter``.

    Raises:
        OSError: there is no list for this machine.
    """
    if machine not in _MACHINES or sys.byteorder != "little":
        raise OSError(f"no list of system calls for {machine}")
    audit, plain, memory = _MACHINES[machine]

    def step(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
        return struct.pack("=HBBI", code, yes, no, value)

    steps = [
        step(_LOAD, _ARCHITECTURE),
        step(_EQUAL, audit, 1, 0),
        step(_RETURN, _KILL),
        step(_LOAD, _NUMBER),
        step(_ABOVE, _X32, 0, 1),
        step(_RETURN, _KILL),
    ]
    for number in plain.values():
        steps += [step(_EQUAL, number, 0, 1), step(_RETURN, _ALLOW)]
    # The last check may load another word: nothing is compared with the number after it.
    first, second = memory.values()
    steps += [
        step(_EQUAL, first, 2, 0),
        step(_EQUAL, second, 1, 0),
        step(_RETURN, _REFUSE),
        step(_LOAD, _PROTECTION),
        step(_SET, _EXECUTABLE, 0, 1),
        step(_RETURN, _REFUSE),
        step(_RETURN, _ALLOW),
    ]
    return b"".join(steps)


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("steps", ctypes.c_void_p)]


def die_with_parent() -> None:
    """Let the kernel end this process when the one that forked it ends."""
    _prctl(_PR_SET_PDEATHSIG, _SIGKILL)


def confine(memory: int, cpu_s: float) -> None:
    """Give up every right for ever, in this process.

    Args:
        memory: bytes it may use beyond what it uses now.
        cpu_s: seconds of computing after which the kernel ends it, whatever else happens.

    Raises:
        OSError: the kernel refuses the filter, or there is none for this machine.
    """
    with open("/proc/self/statm", "rb") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    seconds = int(cpu_s) + 2
    for limit, most in (
        (resource.RLIMIT_AS, used + memory),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NPROC, 0),
    ):
        resource.setrlimit(limit, (most, most))
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    steps = filter_bytes(platform.machine())
    buffer = ctypes.create_string_buffer(steps, len(steps))
    program = _Program(len(steps) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    _prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(program))


def _prctl(option: int, *values: object) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    padded = [*values, *[0] * (4 - len(values))]
    given = [ctypes.c_ulong(v) if isinstance(v, int) else v for v in padded]
    if library.prctl(option, *given) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
