"""The pieces of a filter of system calls, as the kernel runs it.

A filter is classic BPF over `struct seccomp_data` (number, architecture, instruction pointer, six arguments), as
`seccomp(2)` describes it: `struct sock_filter` after `struct sock_filter`. Standard library only.
"""

import struct

LOAD = 0x20  # BPF_LD | BPF_W | BPF_ABS
JUMP_EQUAL = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
JUMP_AT_LEAST = 0x35  # BPF_JMP | BPF_JGE | BPF_K
JUMP_ANY_BIT = 0x45  # BPF_JMP | BPF_JSET | BPF_K
AND = 0x54  # BPF_ALU | BPF_AND | BPF_K
RETURN = 0x06  # BPF_RET | BPF_K
ALLOW = 0x7FFF0000
KILL = 0x80000000
REFUSE = 0x00050000
"""To be joined with the number of an error."""
ASK = 0x7FC00000
"""SECCOMP_RET_USER_NOTIF: a supervisor outside the filter answers; without one, the call is not there."""
NUMBER, ARCHITECTURE, ARGUMENTS = 0, 4, 16
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""AUDIT_ARCH by machine."""


def line(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    """Return one instruction; jumps are numbers of lines to leave out."""
    return struct.pack("HBBI", code, if_true, if_false, value)


def beginning(machine: str) -> list[bytes]:
    """Return the first lines: they end a process with calls of another architecture, and load a call's number."""
    known = line(JUMP_EQUAL, ARCHITECTURES[machine], 1, 0)
    return [line(LOAD, ARCHITECTURE), known, line(RETURN, KILL), line(LOAD, NUMBER)]


def argument(index: int) -> bytes:
    """Load the lower half of an argument: flags, limits, families, commands and process ids are 32 bits wide."""
    return line(LOAD, ARGUMENTS + 8 * index)


def if_call(number: int, then: list[bytes]) -> list[bytes]:
    """Run some lines for one call only. They leave another value loaded, so they have to end with a verdict."""
    return [line(JUMP_EQUAL, number, 0, len(then)), *then]
