// Wraps the cancellation points of the C library that the plugin calls, except the three named below. The
// wrapper puts cancellation off during the call (cancellation.h says why). CMake reads the names below and
// passes each to the linker (--wrap). The linker then redirects calls of NAME to __wrap_NAME, and calls of
// __real_NAME to NAME. Three functions are not wrapped. In epoll_pwait and clock_nanosleep, a thread is
// allowed to end. fcntl is a cancellation point only if it waits; around such a call, ring_group.cc puts
// cancellation off.
//
// The two functions that carry frames, recvmmsg and sendmmsg, go through syscall(), which is not a
// cancellation point. Putting cancellation off would cost 110 more instructions for each call.
//
// The test calls.points fails if the plugin calls a cancellation point that this file does not wrap.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>

#include "os/cancellation.h"

using cluster::os::PutOffCancellation;

namespace {

/// Returns the argument `mode` of open or openat, which follows `flags`. Returns 0 if the call creates no
/// file, because such a call has no argument `mode`.
mode_t mode_of(int flags, va_list arguments) {
  const bool creates = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  return creates ? static_cast<mode_t>(va_arg(arguments, unsigned)) : 0;
}

}  // namespace

// The linker prescribes the names __real_NAME and __wrap_NAME.
#define PUT_OFF(name, Result, parameters, arguments) \
  Result __real_##name parameters;                   \
  Result __wrap_##name parameters;                   \
  Result __wrap_##name parameters {                  \
    const PutOffCancellation off;                    \
    return __real_##name arguments;                  \
  }
#define PUT_OFF_NOT_NEEDED(name, Result, parameters, ...) \
  Result __wrap_##name parameters;                        \
  Result __wrap_##name parameters { return static_cast<Result>(::syscall(SYS_##name, __VA_ARGS__)); }
#define PUT_OFF_VARIADIC(name, parameters, flags, arguments) \
  int __real_##name parameters;                              \
  int __wrap_##name parameters;                              \
  int __wrap_##name parameters {                             \
    const PutOffCancellation off;                            \
    va_list more;                                            \
    va_start(more, flags);                                   \
    const mode_t mode = mode_of(flags, more);                \
    va_end(more);                                            \
    return __real_##name arguments;                          \
  }

extern "C" {

PUT_OFF(accept4, int, (int a, sockaddr* b, socklen_t* c, int d), (a, b, c, d))
PUT_OFF(close, int, (int a), (a))
PUT_OFF(closedir, int, (DIR * a), (a))
PUT_OFF(connect, int, (int a, const sockaddr* b, socklen_t c), (a, b, c))
PUT_OFF(dlopen, void*, (const char* a, int b), (a, b))
PUT_OFF(epoll_wait, int, (int a, epoll_event* b, int c, int d), (a, b, c, d))
PUT_OFF(fclose, int, (FILE * a), (a))
PUT_OFF(fflush, int, (FILE * a), (a))
PUT_OFF(fgets, char*, (char* a, int b, FILE* c), (a, b, c))
PUT_OFF(fopen, FILE*, (const char* a, const char* b), (a, b))
PUT_OFF(fputc, int, (int a, FILE* b), (a, b))
PUT_OFF(fputs, int, (const char* a, FILE* b), (a, b))
PUT_OFF(fwrite, size_t, (const void* a, size_t b, size_t c, FILE* d), (a, b, c, d))
PUT_OFF(getaddrinfo, int, (const char* a, const char* b, const addrinfo* c, addrinfo** d), (a, b, c, d))
PUT_OFF(getrandom, ssize_t, (void* a, size_t b, unsigned c), (a, b, c))
PUT_OFF(nanosleep, int, (const timespec* a, timespec* b), (a, b))
PUT_OFF(poll, int, (pollfd * a, nfds_t b, int c), (a, b, c))
PUT_OFF(pread, ssize_t, (int a, void* b, size_t c, off_t d), (a, b, c, d))
PUT_OFF(pthread_cond_wait, int, (pthread_cond_t * a, pthread_mutex_t* b), (a, b))
PUT_OFF(pthread_join, int, (pthread_t a, void** b), (a, b))
PUT_OFF(read, ssize_t, (int a, void* b, size_t c), (a, b, c))
PUT_OFF(recv, ssize_t, (int a, void* b, size_t c, int d), (a, b, c, d))
PUT_OFF(recvfrom, ssize_t, (int a, void* b, size_t c, int d, sockaddr* e, socklen_t* f), (a, b, c, d, e, f))
PUT_OFF(recvmsg, ssize_t, (int a, msghdr* b, int c), (a, b, c))
PUT_OFF(send, ssize_t, (int a, const void* b, size_t c, int d), (a, b, c, d))
PUT_OFF(sendmsg, ssize_t, (int a, const msghdr* b, int c), (a, b, c))
PUT_OFF(sendto, ssize_t, (int a, const void* b, size_t c, int d, const sockaddr* e, socklen_t f),
        (a, b, c, d, e, f))
PUT_OFF(write, ssize_t, (int a, const void* b, size_t c), (a, b, c))
PUT_OFF(writev, ssize_t, (int a, const iovec* b, int c), (a, b, c))
PUT_OFF_NOT_NEEDED(recvmmsg, int, (int a, mmsghdr* b, unsigned c, int d, timespec* e), a, b, c, d, e)
PUT_OFF_NOT_NEEDED(sendmmsg, int, (int a, mmsghdr* b, unsigned c, int d), a, b, c, d)
PUT_OFF_VARIADIC(open, (const char* a, int flags, ...), flags, (a, flags, mode))
PUT_OFF_VARIADIC(openat, (int a, const char* b, int flags, ...), flags, (a, b, flags, mode))

#ifdef __GLIBC__
// The headers of glibc replace some calls by the functions below, to support large files or to check the size
// of buffers (_FORTIFY_SOURCE).
PUT_OFF(fopen64, FILE*, (const char* a, const char* b), (a, b))
PUT_OFF(__fgets_chk, char*, (char* a, size_t b, int c, FILE* d), (a, b, c, d))
PUT_OFF(__poll_chk, int, (pollfd * a, nfds_t b, int c, size_t d), (a, b, c, d))
PUT_OFF(__pread_chk, ssize_t, (int a, void* b, size_t c, off_t d, size_t e), (a, b, c, d, e))
PUT_OFF(__read_chk, ssize_t, (int a, void* b, size_t c, size_t d), (a, b, c, d))
PUT_OFF(__recv_chk, ssize_t, (int a, void* b, size_t c, size_t d, int e), (a, b, c, d, e))
PUT_OFF(__recvfrom_chk, ssize_t, (int a, void* b, size_t c, size_t d, int e, sockaddr* f, socklen_t* g),
        (a, b, c, d, e, f, g))
PUT_OFF(__open_2, int, (const char* a, int b), (a, b))
PUT_OFF(__openat_2, int, (int a, const char* b, int c), (a, b, c))
#endif

}  // extern "C"
