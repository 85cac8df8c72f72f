// Under which names an endpoint is found on its node: without a key one that says its address, with keys one for
// each, which only processes with the key can tell (seal/local_proof.h). So endpoints with different keys, or with and
// without one, do not find each other: they are as far apart as if they were on two nodes.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "os/local_socket.h"
#include "os/wait_set.h"
#include "seal/job_key.h"

namespace cluster::shm {

struct KeyedName {
  std::string socket;
  std::shared_ptr<const seal::JobKey> key;  ///< null: there is none
};

/// `plain`: the name where there is no key. Nothing if libcrypto failed.
std::vector<KeyedName> keyed_names(const std::string& plain, const seal::JobKeys& keys);

/// A connection, and the key under whose name it came about. The listener may hold an alternative of that name
/// (os/local_socket.h): the kernel says which.
struct KeyedSocket {
  os::LocalSocket socket;                   ///< empty: there is none
  std::shared_ptr<const seal::JobKey> key;  ///< null: there is none
};

/// To the first of the names that a process of this user listens to; as os::connect_to_own().
KeyedSocket connect_to(const std::vector<KeyedName>& names, bool expected, std::string& reason,
                       bool* full = nullptr);

/// Listens to all names of one endpoint.
class KeyedListener {
 public:
  KeyedListener() = default;
  /// On failure an empty one, and `reason` says why.
  static KeyedListener listen(const std::vector<KeyedName>& names, std::string& reason);

  explicit operator bool() const { return !sockets_.empty(); }
  /// The next connection that came in; as os::LocalSocket::accept().
  KeyedSocket accept(std::string& reason, bool* exhausted = nullptr) const;
  /// Readable when a connection waits.
  int descriptor() const {
    return wait_set_ != nullptr ? wait_set_->descriptor() : sockets_.front().socket.descriptor();
  }

 private:
  std::vector<KeyedSocket> sockets_;
  std::unique_ptr<os::WaitSet> wait_set_;  ///< if there are several
};

}  // namespace cluster::shm
