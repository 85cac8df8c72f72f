"""Of the C library's functions that the plugin calls, only two may end a cancelled thread.

    cancellation_points.py PLUGIN

prov/cluster/src/os/cancellation_points.cc defers the cancellation in each. The test fails for a function that the
plugin calls and that file lacks.
"""
import re
import subprocess
import sys

# pthreads(7), required and permitted ones, and Linux's own. Left out are permitted ones that are none in glibc and musl: ioctl,
# fstat and other questions about files, readdir, fdopen, setlocale, strerror and the like; and fcntl, which is one only
# when it waits for the lock of a file.
POINTS = """accept accept4 aio_suspend clock_nanosleep close closedir connect copy_file_range creat dlopen epoll_pwait epoll_pwait2 epoll_wait
    fallocate fclose fdatasync fflush fgetc fgets fopen fopen64 fprintf fputc fputs fread freopen fscanf fsync ftell fwrite getaddrinfo getc
    getchar getdelim gethostbyname getline getnameinfo getpwnam getpwuid getrandom gets lockf mq_receive mq_send msgrcv msgsnd msync
    nanosleep open open64 open_by_handle_at openat openat64 opendir pause pclose perror poll popen ppoll pread pread64 preadv printf pselect
    pthread_cond_timedwait pthread_cond_wait pthread_join pthread_testcancel putc putchar puts pwrite pwrite64 pwritev read readv
    recv recvfrom recvmmsg recvmsg rewinddir scanf select sem_timedwait sem_wait send sendmmsg sendmsg sendto sigsuspend
    sigtimedwait sigwait sigwaitinfo sleep splice sync_file_range syslog system tcdrain tee usleep vfprintf vfscanf vmsplice vprintf wait wait4 waitid
    waitpid write writev""".split()
ENDS_THERE = {"epoll_pwait", "clock_nanosleep"}
PLAIN = re.compile(r"^(?:__(?:isoc\d+_)?)?(\w+?)(?:_chk|_2)?$")  # __read_chk, __openat_2, __isoc99_fscanf


def symbols(*options):
    lines = subprocess.run(["nm", *options], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    return {line.split()[-1].split("@")[0] for line in lines if line}


def main(plugin):
    called = {name for name in symbols("-D", "--undefined-only", plugin) if PLAIN.match(name).group(1) in POINTS}
    put_off = {name.removeprefix("__wrap_") for name in symbols("--defined-only", plugin) if name.startswith("__wrap_")}
    if not put_off:
        sys.exit(f"{plugin} has no symbols, or puts off nothing")
    missing = sorted(called - put_off - ENDS_THERE)
    print(f"{len(called)} cancellation points are called")
    sys.exit(f"not in cancellation_points.cc: {', '.join(missing)}" if missing else 0)


main(*sys.argv[1:])
