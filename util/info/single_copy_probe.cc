#include "single_copy_probe.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <fstream>

#include "os/process_memory.h"

namespace cluster::info {
namespace {

constexpr std::uint64_t kSecret = 0x6e6f6465206f6e65;
constexpr int kWrong = 255;  // no errno is that large

std::uint64_t secret = 0;

/// 0, or the errno with which `reader` fails to read from `read`.
int read_from(pid_t read) {
  std::uint64_t seen = 0;
  const Bytes target[] = {as_bytes(&seen, sizeof seen)};
  errno = 0;
  if (os::read_process(read, reinterpret_cast<std::uintptr_t>(&secret), target, 0, sizeof seen)) {
    return seen == kSecret ? 0 : kWrong;
  }
  return errno != 0 ? errno : kWrong;
}

/// Forks a child that has the secret and lives until it is killed; -1 on failure.
pid_t start_holder() {
  int ready[2];
  if (::pipe(ready) != 0) return -1;
  const pid_t child = ::fork();
  if (child == 0) {
    secret = kSecret;
    ::close(ready[0]);
    if (::write(ready[1], "", 1) == 1) ::pause();
    ::_exit(0);
  }
  ::close(ready[1]);
  char word;
  const bool there = child > 0 && ::read(ready[0], &word, 1) == 1;
  ::close(ready[0]);
  return there ? child : -1;
}

std::string words_for(int error) {
  if (error == ENOSYS) return "this kernel cannot (process_vm_readv, CONFIG_CROSS_MEMORY_ATTACH)";
  if (error != EPERM && error != EACCES) return std::strerror(error);
  std::ifstream file("/proc/sys/kernel/yama/ptrace_scope");
  int scope = 0;
  if (file >> scope && scope > 0) {
    return "the kernel permits it to debuggers only: kernel.yama.ptrace_scope is " + std::to_string(scope) +
           ", 0 would permit it";
  }
  return "the kernel refuses it: a seccomp filter, as containers have, or a security module";
}

}  // namespace

std::string single_copy_error() {
  const pid_t holder = start_holder();
  if (holder < 0) return "not tried: no process can be started";
  const pid_t reader = ::fork();
  if (reader == 0) ::_exit(read_from(holder));
  int status = 0;
  const bool ended = reader > 0 && ::waitpid(reader, &status, 0) == reader && WIFEXITED(status);
  ::kill(holder, SIGKILL);
  ::waitpid(holder, nullptr, 0);
  if (!ended) return "not tried: no process can be started";
  const int error = WEXITSTATUS(status);
  return error == 0 ? "" : words_for(error);
}

}  // namespace cluster::info
