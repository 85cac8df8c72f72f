// The process at the other end of a local connection. A handle (pidfd) identifies the process even after the
// connection has ended, and even after the kernel has given its PID to another process. The handle is
// readable once the process has ended.
//
// This process keeps at most kHandlesMax handles. It identifies further peers by their PID, and by the inode
// of a handle that it has closed again. Since Linux 6.9, that inode differs between two processes that had
// the same PID. Nothing announces the end of a peer without a handle, so the user of this class must call
// ended() regularly.
#pragma once

#include <cstdint>

#include "os/descriptor.h"
#include "os/local_socket.h"

namespace cluster::os {

class PeerProcess {
 public:
  static constexpr int kHandlesMax = 256;

  enum class Watch : std::uint8_t { handle, number };
  /// Identifies the process by its PID if `watch` is Watch::number, or if no handle is available.
  explicit PeerProcess(const LocalSocket& socket, Watch watch = Watch::handle);
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;
  ~PeerProcess();

  /// Returns a descriptor that is readable once the process has ended. Returns -1 if there is no handle.
  /// Without a handle, the caller must call ended() regularly.
  int descriptor() const { return handle_.number(); }
  /// Returns the other process's PID in the PID namespace of this process, or 0 if it has no PID there.
  /// Without a handle, the PID may belong to a later process.
  int number() const { return number_; }
  /// Returns true if the process has ended. Returns false if it runs, or if this process cannot find out.
  /// Makes system calls.
  bool ended() const;
  /// Returns false if this process cannot find out whether the other process has ended. There are two
  /// reasons. Either this object has no handle, and the other process has no PID in this PID namespace. Or a
  /// seccomp filter forbids the system calls.
  bool observable() const { return observable_; }

 private:
  void keep(Descriptor handle);
  Descriptor open_number() const;
  bool number_unused() const;

  int number_;
  Descriptor handle_;
  std::uint64_t identity_ = 0;  ///< inode of a handle of the process; 0 if unknown
  bool ended_ = false;          ///< the process ended before a handle could be opened
  bool observable_ = false;
};

}  // namespace cluster::os
