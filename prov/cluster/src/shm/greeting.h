// How a connection inside a node begins. The connector finds the listener by the name of its socket. Then the
// connector sends a hello together with a descriptor of shared memory.
//
// Names. Without a key, the name of an endpoint's socket contains the endpoint's address. With keys, the
// endpoint has one socket name per key, and only processes with that key can compute the name
// (seal/local_proof.h). So endpoints with different keys do not find each other. An endpoint with a key and
// an endpoint without one do not find each other either. Such endpoints treat each other like endpoints on
// different nodes.
//
// Greeting. With a key, each side first proves that it has the key. The connector sends its hello only after
// the listener's proof. The listener accepts a hello only with a tag, which proves that the connector has the
// key. Neither side blocks. So a caller repeats its call (HelloSender::advance, HelloReceiver::receive) until
// the other side's message has arrived.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/address.h"
#include "os/descriptor.h"
#include "os/local_socket.h"
#include "os/wait_set.h"
#include "seal/job_key.h"
#include "seal/local_proof.h"

namespace cluster::shm {

/// Returns the abstract name of a socket of this endpoint for the case without a key. The name contains the
/// version, so a process with another version finds no socket.
std::string plain_name(const char* kind, std::uint32_t version, const SocketAddress& endpoint);

struct KeyedName {
  std::string socket;
  std::shared_ptr<const seal::JobKey> key;  ///< null if there is no key
};

/// Returns one name for each key, or `plain` alone if there is no key.
std::vector<KeyedName> keyed_names(const std::string& plain, const seal::JobKeys& keys);

/// A connection or a listening socket, and the key with which its socket name was made. If another
/// user holds that name, the listener uses the name with a random suffix (os/local_socket.h).
/// LocalSocket::called_name() asks the kernel for the name that the listener uses.
struct KeyedSocket {
  os::LocalSocket socket;                   ///< empty if there is no connection
  std::shared_ptr<const seal::JobKey> key;  ///< null if there is no key
};

/// Connects to the first of the names at which a process of this user listens. For the arguments see
/// os::connect_to_own().
KeyedSocket connect_to(const std::vector<KeyedName>& names, bool expected, std::string& reason,
                       bool* full = nullptr);

/// Listens at all names of one endpoint.
class KeyedListener {
 public:
  KeyedListener() = default;
  /// Returns an empty listener on failure, and sets `reason` to the cause.
  static KeyedListener listen(const std::vector<KeyedName>& names, std::string& reason);

  explicit operator bool() const { return !sockets_.empty(); }
  /// Returns the next connection that a connector has made, as os::LocalSocket::accept() does.
  KeyedSocket accept(std::string& reason, bool* exhausted = nullptr) const;
  /// Returns a descriptor that is readable when a connection waits.
  int descriptor() const {
    return wait_set_ != nullptr ? wait_set_->descriptor() : sockets_.front().socket.descriptor();
  }

 private:
  std::vector<KeyedSocket> sockets_;
  std::unique_ptr<os::WaitSet> wait_set_;  ///< null if there is only one socket
};

/// The connector's side.
class HelloSender {
 public:
  enum class State : std::uint8_t {
    waiting,  ///< the listener has not yet proved that it has the key
    sent,     ///< the hello was sent, so this side may write to the shared memory
    failed,   ///< the listener does not have the key, or is gone
  };

  HelloSender(const KeyedSocket& connection, ConstBytes hello, os::Descriptor file, Random& random);

  /// Starts the greeting. Called once, before all other calls. Returns false on failure, and sets `reason` to
  /// the cause.
  bool begin(const os::LocalSocket& socket, std::string& reason);
  State state() const { return state_; }
  /// Sends the hello if the listener's answer has arrived, and returns the new state. Makes a system call.
  State advance(os::LocalSocket& socket);

 private:
  bool send_hello(const os::LocalSocket& socket, std::string& reason);

  std::optional<seal::LocalProof> proof_;  ///< empty if there is no key
  std::vector<std::byte> hello_;           ///< the hello, with space for its tag
  os::Descriptor file_;
  State state_ = State::waiting;
};

/// A connection and its greeting.
struct GreetedSocket {
  os::LocalSocket socket;
  HelloSender greeting;
};

/// The listener's side of the greeting, for one connection.
class HelloReceiver {
 public:
  using Receipt = os::LocalSocket::Receipt;

  HelloReceiver(KeyedSocket connection, Random& random);

  const os::LocalSocket& socket() const { return socket_; }
  os::LocalSocket take_socket() { return std::move(socket_); }
  /// Returns true once this side has answered the connector's request. From then on, the next message is the
  /// hello.
  bool answered() const { return answered_; }
  /// Reads the connector's messages that have arrived, and answers a request. Returns `message` once the
  /// hello has arrived and is authentic.
  Receipt receive(Bytes hello, os::Descriptor& file);
  /// Returns true if receive() has returned `misfit` because the tag of the hello is wrong.
  bool forged() const { return forged_; }

 private:
  Receipt answer();
  Receipt receive_signed(Bytes hello, os::Descriptor& file);

  os::LocalSocket socket_;
  std::optional<seal::LocalProof> proof_;  ///< empty if there is no key
  bool answered_ = false;
  bool forged_ = false;
};

}  // namespace cluster::shm
