// Connections between processes of one network namespace: UNIX sockets for whole messages (SOCK_SEQPACKET)
// with abstract names. An abstract name is in no file system, and disappears when its socket is closed. A
// message on a connection can carry a descriptor. The kernel reports the credentials of the peer. A
// connection ends when the peer dies, unless a forked child of the peer keeps the socket open
// (os/peer_process.h). Only wait_for_message() blocks.
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

/// The address of a socket with an abstract name. The first byte of the name is zero. The size of the address
/// determines the length of the name.
struct LocalName {
  explicit LocalName(std::string_view name);

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }

  sockaddr_un address{};
  socklen_t size;
};

class LocalSocket {
 public:
  LocalSocket() = default;

  /// Listens at the name. On failure, returns an empty socket and writes the cause to `reason`.
  static LocalSocket listen(std::string_view name, std::string& reason);
  /// Connects to the listener at the name. On failure, returns an empty socket and writes the cause to
  /// `reason`. Sets `full` to true if the listener's queue of connections is full.
  static LocalSocket connect(std::string_view name, std::string& reason, bool* full = nullptr);
  /// Accepts the next connection. If no connection is waiting, returns an empty socket and sets `reason` to
  /// an empty text. Sets `exhausted` to true if this process or the system has no free descriptor.
  LocalSocket accept(std::string& reason, bool* exhausted = nullptr) const;

  /// Returns a listener that another process has opened and shares with this one.
  static LocalSocket of_listener(Descriptor listener) { return LocalSocket(std::move(listener)); }

  explicit operator bool() const { return static_cast<bool>(socket_); }
  const Descriptor& socket() const { return socket_; }

  /// Returns true if the other side runs as the effective user of this process. On the connecting side, this
  /// is the user that the listener had when it called listen().
  bool same_user() const;
  /// Returns true if the other side runs as another user. If the kernel does not report the user, same_user()
  /// and other_user() both return false.
  bool other_user() const;

  /// Returns the user ID of the other side in the user namespace of this process, or nullopt if it is
  /// unknown.
  std::optional<unsigned> peer_user() const;

  /// Returns the PID of the process on the other side in the PID namespace of this process, or 0 if it has no
  /// PID there.
  int peer_process() const;

  /// Both functions return the name of this connection's listener, as the kernel reports it. The connecting
  /// side calls called_name(). The accepting side calls answering_name(). The name is empty if the socket is
  /// not connected.
  std::string called_name() const;
  std::string answering_name() const;

  /// Sends one whole message with a descriptor. On failure, returns false and writes the cause to `reason`.
  bool send(ConstBytes message, const Descriptor& attachment, std::string& reason) const;
  /// Sends one whole message without a descriptor. Returns false on failure.
  bool send(ConstBytes message) const;

  enum class Receipt { message, nothing, end, misfit };
  /// Receives one message of exactly message.size() bytes. If `attachment` is not null, the message must
  /// carry exactly one descriptor, and otherwise none. Returns Receipt::misfit for any other message. The
  /// message of send_refusal() is a misfit, too; after it, refused() returns true. Returns Receipt::end once
  /// the other side has closed and all its messages have been received.
  Receipt receive(Bytes message, Descriptor* attachment = nullptr);

  /// Waits until a message arrives or the other side closes, but at most for `limit`.
  void wait_for_message(std::chrono::milliseconds limit) const;

  /// Tells the other side that its connection is refused. Without this message, the other side would conclude
  /// that this process has ended.
  void send_refusal() const;
  bool refused();
  int descriptor() const { return socket_.number(); }

  /// Returns true once the other side has closed, even if some of its messages have not been received yet.
  bool hung_up() const;
  /// Returns true once the process on the other side has ended, even if one of its children keeps the socket
  /// open.
  bool peer_process_ended() const;
  /// Opens a handle (pidfd) of the process on the other side. Returns an empty descriptor on failure. Sets
  /// `ended` to true if the reason of the failure is that the process has ended.
  Descriptor open_process(bool& ended) const;

 private:
  explicit LocalSocket(Descriptor socket) : socket_(std::move(socket)) {}
  bool readable() const;

  Descriptor socket_;
  bool refused_ = false;
};

/// The doorbell of an endpoint: a datagram socket with an abstract name. Any number of peers on this node can
/// ring it by sending a byte, without a connection. An endpoint needs only two descriptors for the doorbells
/// of all its peers. It rings their doorbells through the first descriptor. It connects the second descriptor
/// to a doorbell to ask the kernel whether that doorbell exists.
///
/// A ring does not say which process rang, and processes of other users can ring too. Therefore a ring only
/// means that the endpoint must check all its peers. A ring is lost if the socket's queue is full. This does
/// no harm, because a socket with a full queue is readable already.
class Doorbell {
 public:
  /// Opens the doorbell with this name. On failure, returns null and writes the cause to `reason`.
  static std::shared_ptr<Doorbell> open(const LocalName& name, std::string& reason);

  /// Returns a descriptor that is readable once a peer has rung, until clear() is called.
  int descriptor() const { return socket_.number(); }
  void clear() const;

  /// Makes the peer's doorbell readable.
  void ring(const LocalName& peer) const;
  /// Returns false once no socket has this name, because the peer's process has ended or executes another
  /// program. If this process has no free descriptor, the function rings the peer to find out whether the
  /// socket exists. Only one thread at a time may call this function.
  bool exists(const LocalName& peer) const;

 private:
  explicit Doorbell(Descriptor socket) : socket_(std::move(socket)) {}

  Descriptor socket_;
  mutable Descriptor asking_;  ///< opened on first use
};

/// Binds a socket to an abstract name, only to reserve the name. No process connects to this socket. On
/// failure, returns an empty descriptor and sets `error` to an errno. The errno is EADDRINUSE if another
/// process has the name.
Descriptor reserve_name(std::string_view name, int& error);

// Any user of a node can take an abstract name earlier than the process that should have it. If a process of
// another user has the name, the listener uses an alternative: the name with a random suffix. If a connecting
// process finds a process of another user at the name, it looks for alternatives in the kernel's table of
// sockets. It connects to the first alternative whose listener runs as the user of the connecting process.
// The kernel reports the user of the listener.
//
// By taking many names and alternatives, a user can delay the connections of other users, because a
// connecting process tries one alternative after another. To limit the delay, the process tries at most
// kAlternativesMax alternatives for each peer. If the listener is at none of these, the endpoint uses another
// transport for the peer. A listener takes no alternative if a process of its own user has the name: the name
// is then in use.

inline constexpr std::size_t kAlternativesMax = 1024;

/// Listens at the name or at an alternative. On failure, returns an empty socket and writes the cause to
/// `reason`.
LocalSocket listen_as_own(std::string_view name, std::string& reason);
/// Connects to the listener that runs as the user of this process, at the name or at an alternative. On
/// failure, returns an empty socket and writes the cause to `reason`. `expected`: true if a process on this
/// node should listen at the name. In this case, if no process listens there, this function looks for
/// alternatives, because another user may have taken the name without listening. Sets `full` to true if the
/// queue of an expected listener may be full. Any user can fill such a queue.
LocalSocket connect_to_own(std::string_view name, bool expected, std::string& reason, bool* full = nullptr);

}  // namespace cluster::os
