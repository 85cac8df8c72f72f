// Connects processes of one network namespace by UNIX sockets for whole messages (SOCK_SEQPACKET) with
// abstract names. An abstract name is in no file system, and disappears when its socket is closed. A message
// on a connection can carry a descriptor. The kernel reports the credentials of the peer. A connection ends
// when the peer dies, unless a forked child of the peer keeps the socket open (os/peer_process.h). Of all
// functions, only wait_for_message() blocks.
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

  /// Returns true if the other side runs as the effective user of this process. On the connecting side, the
  /// kernel reports the user that the listener had when it called listen().
  bool same_user() const;
  /// Returns true if the other side runs as another user, or if the other side's user has no number in this
  /// user namespace. If the kernel does not report the user, same_user() and other_user() both return false.
  bool other_user() const;

  /// Returns the user ID of the other side in the user namespace of this process, or nullopt if it is
  /// unknown.
  std::optional<unsigned> peer_user() const;

  /// Returns the PID of the process on the other side in the PID namespace of this process, or 0 if the other
  /// process has no PID there.
  int peer_process() const;

  /// Both functions return the name of this connection's listener, as the kernel reports it. Only the
  /// connecting side calls called_name(), and only the accepting side calls answering_name(). The name is
  /// empty if the socket is not connected.
  std::string called_name() const;
  std::string answering_name() const;

  /// Sends one whole message with a descriptor. On failure, returns false and writes the cause to `reason`.
  bool send(ConstBytes message, const Descriptor& attachment, std::string& reason) const;
  /// Sends one whole message without a descriptor. Returns false on failure.
  bool send(ConstBytes message) const;

  enum class Receipt { message, nothing, end, misfit };
  /// Receives one message of exactly message.size() bytes. The message must carry exactly one descriptor if
  /// `attachment` is not null, and no descriptor if `attachment` is null. Returns Receipt::misfit for any
  /// other message, and Receipt::nothing if no message is waiting. The message of send_refusal() is a misfit,
  /// too. After this message, refused() returns true. Returns Receipt::end once the other side has closed and
  /// all its messages have been received, and if the connection fails.
  Receipt receive(Bytes message, Descriptor* attachment = nullptr);

  /// Waits until a message arrives or the other side closes, but at most for `limit`.
  void wait_for_message(std::chrono::milliseconds limit) const;

  /// Tells the other side that this side refuses the connection. Without this message, the other side would
  /// conclude that this process has ended.
  void send_refusal() const;
  bool refused();
  int descriptor() const { return socket_.number(); }

  /// Returns true once the other side has closed, even if some of its messages have not been received yet.
  bool hung_up() const;
  /// Returns true once the process on the other side has ended, even if one of its children keeps the socket
  /// open.
  bool peer_process_ended() const;
  /// Opens a handle (pidfd) of the process on the other side. Returns an empty descriptor on failure. Sets
  /// `ended` to true if this function fails because the process has ended.
  Descriptor open_process(bool& ended) const;

 private:
  explicit LocalSocket(Descriptor socket) : socket_(std::move(socket)) {}
  bool readable() const;

  Descriptor socket_;
  bool refused_ = false;
};

/// The doorbell of an endpoint is a datagram socket with an abstract name. Any number of peers on this node
/// can ring the doorbell: each sends a byte to the name, without a connection. An endpoint needs only two
/// descriptors for the doorbells of all its peers. The endpoint sends the bytes through the socket of its own
/// doorbell. It connects a second socket, `asking_`, to a peer's doorbell to ask the kernel whether that
/// doorbell exists.
///
/// A byte does not say which process has sent it, and processes of other users can send bytes too. Therefore
/// a byte only means that the endpoint must check all its peers. A byte is lost if the socket's queue is
/// full. This does no harm, because a socket with a full queue is readable already.
class Doorbell {
 public:
  /// Opens the doorbell with this name. On failure, returns null and writes the cause to `reason`.
  static std::shared_ptr<Doorbell> open(const LocalName& name, std::string& reason);

  /// Returns a descriptor that is readable once a peer has rung, until clear() is called.
  int descriptor() const { return socket_.number(); }
  void clear() const;

  /// Makes the peer's doorbell readable.
  void ring(const LocalName& peer) const;
  /// Returns false once no socket has this name: the peer's process has ended, or has called exec(). If this
  /// process has no free descriptor, the function rings the peer to find out whether the socket exists. Only
  /// one thread at a time may call this function.
  bool exists(const LocalName& peer) const;

 private:
  explicit Doorbell(Descriptor socket) : socket_(std::move(socket)) {}

  Descriptor socket_;
  mutable Descriptor asking_;  ///< opened on first use
};

// Any user of a node can take an abstract name earlier than the process that should listen there. If a
// process of another user has the name, the listener uses an alternative: the name with a random suffix. If a
// process of the listener's own user listens at the name, the name is in use, and listen_as_own() fails.
//
// A connecting process may find a process of another user at the name. Then the connecting process looks for
// alternatives in the kernel's table of sockets. It connects to the first alternative whose listener runs as
// the user of the connecting process. The kernel reports the user of each listener.
//
// A user who takes many names and alternatives can delay the connections of other users, because a connecting
// process tries one alternative after another. To limit the delay, the connecting process tries at most
// kAlternativesMax alternatives for each peer. If the listener is at none of these, the endpoint uses another
// transport for the peer.

inline constexpr std::size_t kAlternativesMax = 1024;

/// Listens at the name or at an alternative. On failure, returns an empty socket and writes the cause to
/// `reason`.
LocalSocket listen_as_own(std::string_view name, std::string& reason);
/// Connects to the listener that runs as the user of this process, at the name or at an alternative. On
/// failure, returns an empty socket and writes the cause to `reason`. `expected`: true if a process on this
/// node should listen at the name. In this case, if no process listens there, this function looks for
/// alternatives, because another user may have taken the name without listening. Sets `full` to true if the
/// queue of the wanted listener may be full. This is not certain, because the full queue may be that of
/// another user's listener.
LocalSocket connect_to_own(std::string_view name, bool expected, std::string& reason, bool* full = nullptr);

}  // namespace cluster::os
