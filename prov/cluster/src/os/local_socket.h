// Connections between processes of one network namespace: UNIX sockets of whole messages
// (SOCK_SEQPACKET) under abstract names, which no file system holds and which vanish with their owner.
// They carry a descriptor beside a message, tell who the other side is, and end exactly when it dies.
// Nothing here blocks.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "os/descriptor.h"

namespace cluster::os {

class LocalSocket {
 public:
  LocalSocket() = default;

  /// On failure an empty one, and `reason` says why.
  static LocalSocket listen(std::string_view name, std::string& reason);
  static LocalSocket connect(std::string_view name, std::string& reason);
  /// The next connection that came in. Empty with an empty `reason` if none waits.
  LocalSocket accept(std::string& reason) const;

  explicit operator bool() const { return static_cast<bool>(socket_); }

  /// True if the other side runs (for a listener's client: was listening) as the effective user that
  /// this process runs as.
  bool same_user() const;

  /// That user, as this one's namespace of users numbers it; nothing if the kernel does not say.
  std::optional<unsigned> peer_user() const;

  /// The process on the other side, as this one's namespace of processes numbers it; 0 if it has no number
  /// there.
  int peer_process() const;

  /// One message, all or nothing, and a descriptor beside it; false with `reason`.
  bool send(ConstBytes message, const Descriptor& attachment, std::string& reason) const;

  enum class Receipt { message, nothing, end, misfit };
  /// One message of exactly message.size() bytes with exactly one descriptor. misfit: anything else
  /// came. end: the other side is gone and everything it sent has been received.
  Receipt receive(Bytes message, Descriptor& attachment) const;

  /// Makes the other side's descriptor readable, if it is not already.
  void send_doorbell() const;
  /// Takes knocks, and whatever else was said, out of the socket.
  void clear_doorbell() const;
  int descriptor() const { return socket_.number(); }

  /// True once the other side is gone, even if messages of it still wait.
  bool hung_up() const;

 private:
  explicit LocalSocket(Descriptor socket) : socket_(std::move(socket)) {}

  Descriptor socket_;
};

/// A name that nobody connects to: who holds it says something by that alone. With EADDRINUSE in `error`
/// somebody else does.
Descriptor reserve_name(std::string_view name, int& error);

}  // namespace cluster::os
