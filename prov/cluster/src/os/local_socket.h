// Connections between processes of one network namespace: UNIX sockets of whole messages (SOCK_SEQPACKET) under abstract names. No
// file system holds such a name, and it vanishes with its owner. A connection carries a descriptor beside a message and reports
// the peer's credentials. It ends when the peer dies, unless a forked child of the peer holds its end open (os/peer_process.h). No call
// blocks but wait_for_message().
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

  /// On failure an empty one, and `reason` says why.
  static LocalSocket listen(std::string_view name, std::string& reason);
  /// `full`: a process listens there whose queue of connections has no place now.
  static LocalSocket connect(std::string_view name, std::string& reason, bool* full = nullptr);
  /// The next connection that came in. Empty with an empty `reason` if none waits. `exhausted`: this process, or the
  /// system, has no free descriptor.
  LocalSocket accept(std::string& reason, bool* exhausted = nullptr) const;

  explicit operator bool() const { return static_cast<bool>(socket_); }

  /// True if the other side runs as the effective user of this process (for a connecting side: if the
  /// listener did when it began to listen).
  bool same_user() const;
  /// True if it runs as another. Neither is true while the kernel does not say.
  bool other_user() const;

  /// The other side's user, as numbered in this process's user namespace; nothing if unknown.
  std::optional<unsigned> peer_user() const;

  /// The process on the other side, as numbered in this process's PID namespace; 0 if it has no number there.
  int peer_process() const;

  /// The name that the listener of this connection holds, as the kernel says it: asked by the side that connected, and by
  /// the side that accepted. Empty if the socket is not connected.
  std::string called_name() const;
  std::string answering_name() const;

  /// One message, all or nothing, and a descriptor beside it; false with `reason`.
  bool send(ConstBytes message, const Descriptor& attachment, std::string& reason) const;
  /// One message without a descriptor.
  bool send(ConstBytes message) const;

  enum class Receipt { message, nothing, end, misfit };
  /// One message of exactly message.size() bytes, with exactly one descriptor if there is an `attachment`. misfit: something else came; a
  /// refusal is one, which refused() remembers. end: the other side is gone, and everything that it sent has been received.
  Receipt receive(Bytes message, Descriptor* attachment = nullptr);

  /// Waits until receive() would find something, at most `limit`.
  void wait_for_message(std::chrono::milliseconds limit) const;

  /// Tells the other side that its connection is refused; otherwise it would conclude that this process has ended.
  void send_refusal() const;
  bool refused();
  int descriptor() const { return socket_.number(); }

  /// True once the other side is gone, even if its messages still wait.
  bool hung_up() const;
  /// True once the process on the other side has ended, even if one of its children holds the socket.
  bool peer_process_ended() const;
  /// A handle (pidfd) of the process on the other side; empty if there is none. `ended`: it is empty because the process has ended.
  Descriptor open_process(bool& ended) const;

 private:
  explicit LocalSocket(Descriptor socket) : socket_(std::move(socket)) {}
  bool readable() const;

  Descriptor socket_;
  bool refused_ = false;
};

/// The doorbell of an endpoint: one datagram socket under an abstract name. Any number of peers on this node ring it by a byte, and none of
/// them needs a connection. An endpoint with a thousand peers has one descriptor to ring all their doorbells, and one to ask the kernel
/// whether they exist, which it connects to one after the other.
///
/// A ring does not say which process rang, and processes of other users can ring: it means nothing but "look". A socket whose queue is
/// full is readable already, so a ring may be lost there.
class Doorbell {
 public:
  /// Null if another socket has the name, or there is no descriptor; `reason` says why.
  static std::shared_ptr<Doorbell> open(const LocalName& name, std::string& reason);

  /// Readable once a peer has rung, until clear().
  int descriptor() const { return socket_.number(); }
  void clear() const;

  /// Makes the peer's doorbell readable, if it is not already.
  void ring(const LocalName& peer) const;
  /// False once no socket has this name: the peer's process has ended or executes another program. Rings the peer if this process has no
  /// free descriptor. Not for two threads at once.
  bool exists(const LocalName& peer) const;

 private:
  explicit Doorbell(Descriptor socket) : socket_(std::move(socket)) {}

  Descriptor socket_;
  mutable Descriptor asking_;  ///< on first use
};

/// Holds an abstract name to which nobody connects: holding it is the message. Empty with EADDRINUSE in `error` if another process
/// holds it.
Descriptor reserve_name(std::string_view name, int& error);

// Abstract names have no owner: any user of a node can take one before the process that it is meant for. So a listener whose name
// a process of another user holds takes an alternative: the name with a random end. A process that connects and finds another user
// behind the name looks for alternatives in the kernel's table of sockets. It takes the first whose listener runs as its own user; the
// kernel says who that is.
//
// A user who takes names and alternatives in masses costs others time: at most kAlternativesMax connections for each peer. After
// that the peer is reached otherwise. A name that a process of the same user holds is in use.

inline constexpr std::size_t kAlternativesMax = 1024;

/// A listener under the name or an alternative; on failure an empty one, and `reason` says why.
LocalSocket listen_as_own(std::string_view name, std::string& reason);
/// A connection to the listener of this process's user; on failure an empty one, and `reason` says why. `expected`: a process of this
/// node should have that name, so another user may hold it without listening. If it is not expected and no process listens, there is
/// no alternative either. `full`: an expected listener's queue may be full now, which any user can bring about.
LocalSocket connect_to_own(std::string_view name, bool expected, std::string& reason, bool* full = nullptr);

}  // namespace cluster::os
