"""Time, chance and system calls are arguments: only os/ and provider/ may reach for the real ones.

So the shipped objects are the simulated objects, and a test can hold every clock still.
"""
import re

from layering import includes
from source import Violation

EXEMPT = {"os", "provider"}

# <sys/auxv.h> only says which instructions the processor has, which on x86-64 a builtin does.
HEADERS = re.compile(
    r"(ctime|time\.h|random|sys/(?!auxv\.h).*|unistd\.h|fcntl\.h|poll\.h|signal\.h|csignal|sched\.h|pthread\.h|"
    r"ifaddrs\.h|netdb\.h|net/.*|netpacket/.*|linux/.*|dlfcn\.h|filesystem|fstream|x86intrin\.h)"
)

# (pattern, what it is). A pattern is matched against code without comments and strings.
CALLS = [
    (r"\b(steady_clock|system_clock|high_resolution_clock|utc_clock)\b", "reads a clock"),
    (r"\b(clock_gettime|gettimeofday|__rdtsc|_rdtsc|__builtin_ia32_rdtsc)\b", "reads a clock"),
    (r"(?<!\w)(std)?::(time|clock|localtime|gmtime)\s*\(", "reads a clock"),
    (r"(?<![\w.>])time\s*\(\s*(nullptr|NULL|0|&)", "reads a clock"),
    (r"\b(random_device|mt19937(_64)?|default_random_engine|arc4random|getrandom|drand48)\b", "draws a number"),
    (r"(?<![\w.>])(std::)?s?rand\s*\(", "draws a number"),
    (r"\b(usleep|nanosleep|sleep_for|sleep_until)\b|(?<![\w.>])sleep\s*\(", "sleeps"),
    (r"\b(secure_getenv|getenv|setenv|putenv)\b", "looks at the environment"),
    (r"\bstd::j?thread\b|\bstd::async\b", "starts a thread"),
    (r"\b(memfd_create|eventfd|timerfd_create|epoll_\w+|mmap|munmap|ioctl|recvmmsg|sendmmsg|getpid|gettid)\s*\(",
     "makes a system call"),
    (r"(?<![\w>])::\s*(socket|bind|connect|accept4?|listen|sendto|sendmsg|recvmsg|recv|send|read|write|open|close|"
     r"poll|fork|getuid|syscall|process_vm_\w+)\s*\(", "makes a system call"),
]

_CONDITIONAL = re.compile(r"^\s*#\s*(if|ifdef|ifndef|elif)\b", re.MULTILINE)


def check(tree):
    for file in tree.cpp("prov/cluster/src/"):
        if file.component() in EXEMPT:
            continue
        for line, quoted, name in includes(file):
            if not quoted and HEADERS.fullmatch(name):
                yield Violation(file.path, line, "banned", f"<{name}> is for os/ and provider/ only",
                                "take what it gives as an argument (Environment, a value, a component like os/)")
        seen = set()
        for pattern, what in CALLS:
            for match in re.finditer(pattern, file.code):
                line = file.code.count("\n", 0, match.start()) + 1
                if line in seen:
                    continue
                seen.add(line)
                yield Violation(file.path, line, "banned", f"'{match.group(0).strip()}' {what}",
                                "only os/ and provider/ may: pass time, chance and descriptors in as arguments")
        for match in _CONDITIONAL.finditer(file.code):
            line = file.code.count("\n", 0, match.start(1)) + 1
            yield Violation(file.path, line, "conditional", f"#{match.group(1)} outside os/",
                            "decide with a type, a value or a component like os/; one source for every build")
