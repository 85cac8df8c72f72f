"""Executes a command for which the kernel refuses some system calls, as a container's seccomp profile does.

    refuse_calls.py CALL[,CALL...] COMMAND [word...]

Each gets EPERM. The word `peer_handle` stands for the handle of a socket's peer (SO_PEERPIDFD), which fails as on a kernel
before 6.5.
"""
import ctypes
import errno
import os
import platform
import struct
import sys

# Number of each call, and what the kernel calls the processor.
_PROCESSORS = {
    "x86_64": (0xC000003E, {"process_vm_readv": 310, "process_vm_writev": 311, "membarrier": 324, "userfaultfd": 323,
                            "pidfd_open": 434, "getsockopt": 55}),
    "aarch64": (0xC00000B7, {"process_vm_readv": 270, "process_vm_writev": 271, "membarrier": 283, "userfaultfd": 282,
                             "pidfd_open": 434, "getsockopt": 209}),
}
_NUMBER_AT, _PROCESSOR_AT, _THIRD_ARGUMENT_AT = 0, 4, 32  # in struct seccomp_data
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000
_SO_PEERPIDFD = 77
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 38, 22, 2


class _Program(ctypes.Structure):
    _fields_ = [("count", ctypes.c_ushort), ("instructions", ctypes.c_void_p)]


def _instruction(code, value, if_true=0, if_false=0):
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _instructions(names):
    processor, numbers = _PROCESSORS[platform.machine()]
    allow = _instruction(_RETURN, _ALLOW)
    code = [_instruction(_LOAD, _PROCESSOR_AT), _instruction(_JUMP_IF_EQUAL, processor, 1), allow, _instruction(_LOAD, _NUMBER_AT)]
    for name in names:
        if name == "peer_handle":
            code += [_instruction(_JUMP_IF_EQUAL, numbers["getsockopt"], 0, 4), _instruction(_LOAD, _THIRD_ARGUMENT_AT),
                     _instruction(_JUMP_IF_EQUAL, _SO_PEERPIDFD, 0, 1), _instruction(_RETURN, _FAIL | errno.ENOPROTOOPT),
                     _instruction(_LOAD, _NUMBER_AT)]
        else:
            code += [_instruction(_JUMP_IF_EQUAL, numbers[name], 0, 1), _instruction(_RETURN, _FAIL | errno.EPERM)]
    return code + [allow]


def refuse(names):
    code = _instructions(names)
    held = ctypes.create_string_buffer(b"".join(code))
    program = _Program(len(code), ctypes.addressof(held))
    libc = ctypes.CDLL(None, use_errno=True)
    for arguments in ((_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0)):
        if libc.prctl(*arguments) != 0:
            sys.exit(f"refuse_calls: prctl: {os.strerror(ctypes.get_errno())}")


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    refuse(sys.argv[1].split(","))
    os.execvp(sys.argv[2], sys.argv[2:])


main()
