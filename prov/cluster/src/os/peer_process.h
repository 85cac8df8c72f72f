// The process at the other end of a local connection. A handle (pidfd) identifies the process beyond the end
// of that connection, and even when its number is reused. The handle is readable once the process has ended.
//
// A process keeps handles of at most kHandlesMax others. It knows further peers by their number, and by the
// inode of a handle (Linux 6.9), which differs between two processes that had the same number. For these
// peers, it has to call ended() now and then.
#pragma once

#include <cstdint>

#include "os/descriptor.h"
#include "os/local_socket.h"

namespace cluster::os {

class PeerProcess {
 public:
  static constexpr int kHandlesMax = 256;

  enum class Watch : std::uint8_t { handle, number };
  /// Knows the process by its number alone if `watch` says so, or if there is no handle.
  explicit PeerProcess(const LocalSocket& socket, Watch watch = Watch::handle);
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;
  ~PeerProcess();

  /// Readable once the process has ended; -1 if there is no handle and only ended() tells.
  int descriptor() const { return handle_.number(); }
  /// The number of the process in this process's PID namespace; 0 if it has none there. Without a handle,
  /// another process may have taken the number meanwhile.
  int number() const { return number_; }
  /// Returns true if the process has ended; false also if nothing is known of it. Costs system calls.
  bool ended() const;
  /// Returns false if this process cannot learn when the other one ends. Then either the other one is in
  /// another PID namespace and the kernel gives no handle (before Linux 6.5), or a filter of system calls
  /// forbids asking.
  bool observable() const { return observable_; }

 private:
  void keep(Descriptor handle);
  Descriptor open_number() const;
  bool number_unused() const;

  int number_;
  Descriptor handle_;
  std::uint64_t identity_ = 0;  ///< of the process that had the number; 0: unknown
  bool ended_ = false;          ///< it ended before there could be a handle
  bool observable_ = false;
};

}  // namespace cluster::os
