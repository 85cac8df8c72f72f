// Preloaded into a program that uses the provider, this makes one of the provider's calls of malloc or of the system
// fail once.
//
//   LIFE_FAULT=FUNCTION:K    the K-th call of FUNCTION by the plugin fails
//   LIFE_FAULT_TRACE=yes     and its callers are written to standard error
//   LIFE_FAULT_COUNTS=FILE   at exit a line "FUNCTION COUNT" for each function that it has called
//
// A call is the plugin's if it returns into the plugin. Calls of libfabric, the C library and the program itself never
// fail. The plugin contains the C++ library, so all its allocations are calls of malloc.
#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_realloc(void* old, std::size_t size);
}

namespace {

using Arg = long;
using Function = Arg (*)(Arg, Arg, Arg, Arg, Arg, Arg);

struct Call {
  const char* name;
  int error;
  std::atomic<unsigned> count{0};
  std::atomic<Function> real{nullptr};
};

std::atomic<std::uintptr_t> plugin_begin{0}, plugin_end{0};

/// Called for each object that dlopen() has loaded so far.
int find_plugin(dl_phdr_info* info, std::size_t, void*) {
  if (std::strstr(info->dlpi_name, "/libcluster-fi.so") == nullptr) return 0;
  std::uintptr_t end = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& part = info->dlpi_phdr[i];
    if (part.p_type == PT_LOAD && part.p_vaddr + part.p_memsz > end) end = part.p_vaddr + part.p_memsz;
  }
  plugin_end = info->dlpi_addr + end;
  plugin_begin = info->dlpi_addr;
  return 1;
}

bool from_plugin(const void* caller) {
  if (plugin_begin == 0) dl_iterate_phdr(find_plugin, nullptr);
  const auto address = reinterpret_cast<std::uintptr_t>(caller);
  return plugin_begin != 0 && address >= plugin_begin && address < plugin_end;
}

struct Fault {
  char name[64] = "";
  unsigned number = 0;
};

Fault wanted_fault() {
  Fault fault;
  if (const char* const text = std::getenv("LIFE_FAULT"))
    std::sscanf(text, "%63[^:]:%u", fault.name, &fault.number);
  return fault;
}

void write_callers() {
  void* callers[30];
  backtrace_symbols_fd(callers, backtrace(callers, 30), STDERR_FILENO);
}

bool fails(Call& call, const void* caller) {
  if (!from_plugin(caller)) return false;
  static const Fault fault = wanted_fault();
  const unsigned number = ++call.count;
  if (number != fault.number || std::strcmp(call.name, fault.name) != 0) return false;
  if (std::getenv("LIFE_FAULT_TRACE") != nullptr) write_callers();
  errno = call.error;
  return true;
}

Function real_of(Call& call) {
  Function real = call.real;
  if (real == nullptr) {
    real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, call.name));
    call.real = real;
  }
  return real;
}

// The errors that the kernel may return there. Numbers and pointers fit into the registers that the real functions read.
// clang-format off
#define LIFE_CALLS(X)                                                                                                \
  X(accept4, EMFILE) X(bind, ENOMEM) X(close_range, ENOMEM) X(connect, ENOMEM) X(epoll_create1, EMFILE)              \
  X(epoll_ctl, ENOSPC) X(epoll_pwait, EINTR) X(epoll_wait, EINTR) X(eventfd, EMFILE) X(fcntl, ENOMEM) X(fstat, ENOMEM) X(fstatfs, ENOMEM)  \
  X(fstatat, ENOMEM) X(ftruncate, ENOSPC) X(getentropy, EIO) X(getrandom, EINTR) X(getrlimit, EPERM)                 \
  X(getsockname, ENOBUFS) X(getsockopt, ENOBUFS) X(ioctl, ENOMEM) X(listen, ENOBUFS) X(madvise, EAGAIN)              \
  X(memfd_create, EMFILE) X(mlock, ENOMEM) X(open, EMFILE) X(openat, EMFILE) X(poll, EINTR) X(pread, EIO)            \
  X(process_vm_readv, ENOMEM) X(process_vm_writev, ENOMEM) X(read, EINTR) X(recv, ENOMEM) X(recvfrom, ENOMEM)        \
  X(recvmmsg, ENOMEM) X(recvmsg, ENOMEM) X(send, ENOBUFS) X(sendmmsg, ENOBUFS) X(sendmsg, ENOBUFS)                   \
  X(sendto, ENOBUFS) X(setrlimit, EPERM) X(setsockopt, ENOBUFS) X(socket, EMFILE)                                    \
  X(timerfd_create, EMFILE) X(timerfd_settime, ENOMEM) X(write, ENOSPC)
// clang-format on

#define LIFE_STATE(name, error) Call call_##name{#name, error};
LIFE_CALLS(LIFE_STATE)
Call call_syscall{"syscall", ENOMEM}, call_malloc{"malloc", ENOMEM}, call_realloc{"realloc", ENOMEM},
    call_fopen{"fopen", EMFILE}, call_mmap{"mmap", ENOMEM}, call_pthread_create{"pthread_create", 0};

Call* const calls[] = {
#define LIFE_PLACE(name, error) &call_##name,
    LIFE_CALLS(LIFE_PLACE) & call_syscall,
    &call_malloc,
    &call_realloc,
    &call_fopen,
    &call_mmap,
    &call_pthread_create};

[[gnu::destructor]] void write_counts() {
  const char* const path = std::getenv("LIFE_FAULT_COUNTS");
  std::FILE* const file = path != nullptr ? std::fopen(path, "w") : nullptr;
  if (file == nullptr) return;
  for (const Call* call : calls) {
    if (call->count != 0) std::fprintf(file, "%s %u\n", call->name, call->count.load());
  }
  std::fclose(file);
}

}  // namespace

extern "C" {

#define LIFE_WRAPPER(name, error)                                                                          \
  [[gnu::visibility("default")]] Arg life_##name(Arg a, Arg b, Arg c, Arg d, Arg e, Arg f) __asm__(#name); \
  Arg life_##name(Arg a, Arg b, Arg c, Arg d, Arg e, Arg f) {                                              \
    if (fails(call_##name, __builtin_return_address(0))) return -1;                                        \
    return real_of(call_##name)(a, b, c, d, e, f);                                                         \
  }
LIFE_CALLS(LIFE_WRAPPER)

/// The plugin makes some calls by number (os/cancellation_points.cc). They count, and fail, as themselves.
[[gnu::visibility("default")]] Arg life_syscall(Arg a, Arg b, Arg c, Arg d, Arg e, Arg f) __asm__("syscall");
Arg life_syscall(Arg a, Arg b, Arg c, Arg d, Arg e, Arg f) {
  Call& call = a == SYS_sendmmsg ? call_sendmmsg : a == SYS_recvmmsg ? call_recvmmsg : call_syscall;
  if (fails(call, __builtin_return_address(0))) return -1;
  return real_of(call_syscall)(a, b, c, d, e, f);
}
/// Both fail with MAP_FAILED or null; pthread_create returns the error number itself.
[[gnu::visibility("default")]] Arg life_mmap(Arg a, Arg b, Arg c, Arg d, Arg e, Arg f) __asm__("mmap");
Arg life_mmap(Arg a, Arg b, Arg c, Arg d, Arg e, Arg f) {
  if (fails(call_mmap, __builtin_return_address(0))) return -1;
  return real_of(call_mmap)(a, b, c, d, e, f);
}
[[gnu::visibility("default")]] Arg life_fopen(Arg a, Arg b) __asm__("fopen");
Arg life_fopen(Arg a, Arg b) {
  if (fails(call_fopen, __builtin_return_address(0))) return 0;
  return real_of(call_fopen)(a, b, 0, 0, 0, 0);
}
[[gnu::visibility("default")]] Arg life_thread(Arg a, Arg b, Arg c, Arg d) __asm__("pthread_create");
Arg life_thread(Arg a, Arg b, Arg c, Arg d) {
  if (fails(call_pthread_create, __builtin_return_address(0))) return EAGAIN;
  return real_of(call_pthread_create)(a, b, c, d, 0, 0);
}
[[gnu::visibility("default")]] void* life_malloc(std::size_t size) __asm__("malloc");
void* life_malloc(std::size_t size) {
  return fails(call_malloc, __builtin_return_address(0)) ? nullptr : __libc_malloc(size);
}
[[gnu::visibility("default")]] void* life_realloc(void* old, std::size_t size) __asm__("realloc");
void* life_realloc(void* old, std::size_t size) {
  return fails(call_realloc, __builtin_return_address(0)) ? nullptr : __libc_realloc(old, size);
}

}  // extern "C"
