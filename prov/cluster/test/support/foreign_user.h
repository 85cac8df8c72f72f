// Connections of another user to a listener of this process, as a loop of connect(); close(); leaves them in
// its queue. They are closed when the call returns, but they stay in the queue.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "os/local_socket.h"

namespace cluster::test {

/// At most `most`, or until the queue is full. False: this process may not become another user.
inline bool connect_as_other_user(const std::string& name, int most) {
  if (::geteuid() != 0) return false;
  const pid_t child = ::fork();
  if (child == 0) {
    std::string reason;
    bool went = ::setresuid(65534, 65534, 65534) == 0;
    for (int i = 0; i < most && went; ++i) {
      bool full = false;
      went = static_cast<bool>(os::LocalSocket::connect(name, reason, &full)) || full;
      if (full) break;
    }
    ::_exit(went ? 0 : 1);
  }
  int status = 1;
  ::waitpid(child, &status, 0);
  return status == 0;
}

}  // namespace cluster::test
