"""The filter of system calls for the sandbox: a second wall behind the namespaces.

What is refused is what only reaches for the kernel or for other processes: a program that computes
needs none of it. A call that is refused fails with EPERM. Pure.
"""

from __future__ import annotations

import struct

#: The machines that there is a filter for: the number of their architecture in the kernel.
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

#: Refused: their numbers on x86_64 and aarch64, None where there is no such call.
_REFUSED: dict[str, tuple[int | None, int | None]] = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "adjtimex": (159, 171),
    "bpf": (321, 280),
    "chroot": (161, 51),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "delete_module": (176, 106),
    "fanotify_init": (300, 262),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioperm": (173, None),
    "iopl": (172, None),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "lookup_dcookie": (212, 18),
    # memory that no limit of a process counts
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "migrate_pages": (256, 238),
    "modify_ldt": (154, None),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "move_pages": (279, 239),
    "mq_open": (240, 180),
    "msgget": (68, 186),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "personality": (135, 92),
    "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "semget": (64, 190),
    "setdomainname": (171, 162),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "settimeofday": (164, 170),
    "shmget": (29, 194),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
    "vhangup": (153, 58),
}
_CLONE, _IOCTL, _CLONE3 = (56, 220), (16, 29), 435
#: CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET.
_NEW_NAMESPACES = 0x7E020000
#: TIOCSTI and TIOCLINUX type into the terminal of somebody else.
_TYPING = (0x5412, 0x541C)
#: Calls from here on are those of the x32 way of calling.
_X32 = 0x40000000

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_EPERM, _ENOSYS = 1, 38
_NUMBER_AT, _ARCHITECTURE_AT, _FIRST_ARGUMENT_AT, _SECOND_ARGUMENT_AT = 0, 4, 16, 24


def has_filter(machine: str) -> bool:
    """Whether there is a filter for a machine, as `platform.machine` names it."""
    return machine in _ARCHITECTURES


def program(machine: str) -> bytes:
    """The filter as the kernel takes it."""
    which = list(_ARCHITECTURES).index(machine)
    code = [
        _instruction(_LOAD, _ARCHITECTURE_AT),
        _instruction(_EQUAL, _ARCHITECTURES[machine], then=1),
        _instruction(_RETURN, _KILL),
        _instruction(_LOAD, _NUMBER_AT),
        *_refuse_if(_AT_LEAST, _X32),
        # its flags are behind a pointer; without it the C library uses `clone`
        *_refuse_if(_EQUAL, _CLONE3, _ENOSYS),
    ]
    for numbers in _REFUSED.values():
        number = numbers[which]
        if number is not None:
            code += _refuse_if(_EQUAL, number)
    flags = _refuse_if(_ANY_BIT, _NEW_NAMESPACES)
    typing = [each for request in _TYPING for each in _refuse_if(_EQUAL, request)]
    code += _if_call(_CLONE[which], _FIRST_ARGUMENT_AT, flags)
    code += _if_call(_IOCTL[which], _SECOND_ARGUMENT_AT, typing)
    return b"".join([*code, _instruction(_RETURN, _ALLOW)])


def _refuse_if(test: int, value: int, error: int = _EPERM) -> list[bytes]:
    return [_instruction(test, value, otherwise=1), _instruction(_RETURN, _ERRNO | error)]


def _if_call(number: int, argument_at: int, checks: list[bytes]) -> list[bytes]:
    """Looks at the lower half of an argument of one call, and allows it if nothing is wrong."""
    body = [_instruction(_LOAD, argument_at), *checks, _instruction(_RETURN, _ALLOW)]
    return [_instruction(_EQUAL, number, otherwise=len(body)), *body]


def _instruction(code: int, value: int, *, then: int = 0, otherwise: int = 0) -> bytes:
    """One instruction; a test skips so many of those that follow."""
    return struct.pack("=HBBI", code, then, otherwise, value)
