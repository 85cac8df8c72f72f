// Connections between processes of one network namespace: UNIX sockets of whole messages (SOCK_SEQPACKET)
// under abstract names. No file system holds such a name, and it vanishes with its owner. A connection
// carries a descriptor beside a message and reports the peer's credentials. It ends when the peer dies,
// unless a forked child of the peer holds its end open (os/peer_process.h). Only wait_for_message() blocks.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "os/descriptor.h"

namespace cluster::os {

/// An abstract name: its first byte is zero, and its length counts.
struct LocalName {
  explicit LocalName(std::string_view name);

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }

  sockaddr_un address{};
  socklen_t size;
};

class LocalSocket {
 public:
  LocalSocket() = default;

  /// Listens under the name. Returns an empty socket on failure; `reason` says why.
  static LocalSocket listen(std::string_view name, std::string& reason);
  /// Connects to the listener of that name. Returns an empty socket on failure; `reason` says why. Sets
  /// `full` if the listener's queue of connections is full now.
  static LocalSocket connect(std::string_view name, std::string& reason, bool* full = nullptr);
  /// Accepts the next connection. Returns an empty socket with an empty `reason` if none waits. Sets
  /// `exhausted` if this process, or the system, has no free descriptor.
  LocalSocket accept(std::string& reason, bool* exhausted = nullptr) const;

  explicit operator bool() const { return static_cast<bool>(socket_); }

  /// Returns true if the other side runs as the effective user of this process. The connecting side learns
  /// the user that the listener had when it began to listen.
  bool same_user() const;
  /// Returns true if the other side runs as another user. If the kernel does not say, both functions return
  /// false.
  bool other_user() const;

  /// The other side's user, as numbered in this process's user namespace; nothing if unknown.
  std::optional<unsigned> peer_user() const;

  /// The process on the other side, as numbered in this process's PID namespace; 0 if it has no number there.
  int peer_process() const;

  /// Return the name of this connection's listener, as the kernel reports it. The connecting side calls
  /// called_name(), the accepting side answering_name(). The name is empty if the socket is not connected.
  std::string called_name() const;
  std::string answering_name() const;

  /// Sends one whole message, and a descriptor beside it. Returns false on failure; `reason` says why.
  bool send(ConstBytes message, const Descriptor& attachment, std::string& reason) const;
  /// Sends one whole message without a descriptor. Returns false on failure.
  bool send(ConstBytes message) const;

  enum class Receipt { message, nothing, end, misfit };
  /// Receives one message of exactly message.size() bytes, with exactly one descriptor if there is an
  /// `attachment`. Returns misfit if something else came; a refusal is a misfit, and refused() remembers it.
  /// Returns end if the other side is gone, and everything that it sent has been received.
  Receipt receive(Bytes message, Descriptor* attachment = nullptr);

  /// Waits until receive() can return something, at most for `limit`.
  void wait_for_message(std::chrono::milliseconds limit) const;

  /// Tells the other side that its connection is refused; otherwise it would conclude that this process has
  /// ended.
  void send_refusal() const;
  bool refused();
  int descriptor() const { return socket_.number(); }

  /// True once the other side is gone, even if its messages still wait.
  bool hung_up() const;
  /// True once the process on the other side has ended, even if one of its children holds the socket.
  bool peer_process_ended() const;
  /// Opens a handle (pidfd) of the process on the other side. Returns an empty descriptor if there is none,
  /// and sets `ended` if that is because the process has ended.
  Descriptor open_process(bool& ended) const;

 private:
  explicit LocalSocket(Descriptor socket) : socket_(std::move(socket)) {}
  bool readable() const;

  Descriptor socket_;
  bool refused_ = false;
};

/// The doorbell of an endpoint: one datagram socket under an abstract name. Any number of peers on this node
/// ring it by sending a byte, without a connection. An endpoint with a thousand peers needs only two
/// descriptors for their doorbells: one to ring them all, and one to ask the kernel whether they exist. It
/// connects the second one to one doorbell after the other.
///
/// A ring does not say which process rang, and processes of other users can ring: it means nothing but
/// "look". A ring is lost if the socket's queue is full, which does no harm: the socket is then readable
/// already.
class Doorbell {
 public:
  /// Opens the doorbell of that name. Returns null if another socket has the name, or there is no descriptor;
  /// `reason` says why.
  static std::shared_ptr<Doorbell> open(const LocalName& name, std::string& reason);

  /// Readable once a peer has rung, until clear().
  int descriptor() const { return socket_.number(); }
  void clear() const;

  /// Makes the peer's doorbell readable, if it is not already.
  void ring(const LocalName& peer) const;
  /// Returns false once no socket has this name: the peer's process has ended or executes another program.
  /// Without a free descriptor, it rings the peer instead; a failure shows the same. Only one thread may call
  /// at a time.
  bool exists(const LocalName& peer) const;

 private:
  explicit Doorbell(Descriptor socket) : socket_(std::move(socket)) {}

  Descriptor socket_;
  mutable Descriptor asking_;  ///< opened on first use
};

/// Takes an abstract name to which nobody connects: holding the name is the message. Returns an empty
/// descriptor if another process holds the name; `error` is then EADDRINUSE.
Descriptor reserve_name(std::string_view name, int& error);

// Abstract names have no owner: any user of a node can take a name before the process that it is meant for.
// If a process of another user holds the name, the listener takes an alternative: the name with a random
// suffix. A connecting process that finds another user behind the name looks for alternatives in the kernel's
// table of sockets. It takes the first whose listener runs as its own user; the kernel reports that user.
//
// A user who takes many names and alternatives costs others time: at most kAlternativesMax connections for
// each peer. After these, the endpoint reaches the peer by another transport. If a process of the same user
// holds the name, the name counts as in use.

inline constexpr std::size_t kAlternativesMax = 1024;

/// Listens under the name or an alternative. Returns an empty socket on failure; `reason` says why.
LocalSocket listen_as_own(std::string_view name, std::string& reason);
/// Connects to the listener that runs as this process's user. Returns an empty socket on failure; `reason`
/// says why. `expected`: a process of this node should have that name. Then another user may hold the name
/// without listening, so the call looks for alternatives. Otherwise, if no process listens, there is no
/// alternative either. Sets `full` if an expected listener's queue may be full now, which any user can bring
/// about.
LocalSocket connect_to_own(std::string_view name, bool expected, std::string& reason, bool* full = nullptr);

}  // namespace cluster::os
