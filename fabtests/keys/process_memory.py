"""What lies in the memory of a process, and which part of it a core dump would hold."""
import re

_MAPPING = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (\S+)")


def mappings(process):
    """Begin, end and flags (proc(5), VmFlags) of those that can be read; without those of the kernel."""
    found = []
    with open(f"/proc/{process}/smaps", encoding="ascii") as smaps:
        for line in smaps:
            begins = _MAPPING.match(line)
            if begins:
                place, kernels = begins, line.rstrip().endswith(("[vvar]", "[vdso]", "[vsyscall]", "[vvar_vclock]"))
            elif line.startswith("VmFlags:") and not kernels and place[3].startswith("r"):
                found.append((int(place[1], 16), int(place[2], 16), line.split()[1:]))
    return found


def contains(process, secrets, dumped):
    """Names of those secrets that lie in the memory: in all of it, or in what a core dump would hold."""
    found = set()
    with open(f"/proc/{process}/mem", "rb", buffering=0) as memory:
        for begin, end, flags in mappings(process):
            if "io" in flags or (dumped and "dd" in flags):  # dd: MADV_DONTDUMP
                continue
            memory.seek(begin)
            content = memory.read(end - begin)
            found |= {name for name, secret in secrets.items() if secret in content}
    return found
