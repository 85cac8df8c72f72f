#include "os/peer_process.h"

#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <utility>

namespace cluster::os {
namespace {

std::atomic<int> handles{0};

std::uint64_t identity_of(const Descriptor& handle) {
  struct stat status;
  return handle && ::fstat(handle.number(), &status) == 0 ? status.st_ino : 0;
}

bool readable(const Descriptor& handle) {
  pollfd watch{handle.number(), POLLIN, 0};
  return ::poll(&watch, 1, 0) > 0;
}

}  // namespace

PeerProcess::PeerProcess(const LocalSocket& socket, Watch watch) : number_(socket.peer_process()) {
  Descriptor handle = socket.open_process(ended_);
  identity_ = identity_of(handle);
  if (handle && watch == Watch::handle) keep(std::move(handle));
  observable_ = ended_ || handle_ || (number_ > 0 && (open_number() || errno == ESRCH));
}

void PeerProcess::keep(Descriptor handle) {
  if (handles.fetch_add(1, std::memory_order_relaxed) < kHandlesMax) {
    handle_ = std::move(handle);
  } else {
    handles.fetch_sub(1, std::memory_order_relaxed);
  }
}

PeerProcess::~PeerProcess() {
  if (handle_) handles.fetch_sub(1, std::memory_order_relaxed);
}

bool PeerProcess::ended() const {
  if (ended_) return true;
  return handle_ ? readable(handle_) : number_ > 0 && number_unused();
}

Descriptor PeerProcess::open_number() const {
  return Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, number_, 0)));
}

bool PeerProcess::number_unused() const {
  const Descriptor now = open_number();
  if (!now) return errno == ESRCH;
  return (identity_ != 0 && identity_of(now) != identity_) || readable(now);
}

}  // namespace cluster::os
