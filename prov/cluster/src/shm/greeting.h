// How a connection inside a node begins: the connector finds the listener by its name, and sends its hello with a
// descriptor of shared memory beside it.
//
// Names. Without a key the name of an endpoint's socket says its address. With keys it has one name for each, which only
// processes with that key can tell (seal/local_proof.h). So endpoints with different keys, or with and without one, do not
// find each other: they are as far apart as if they were on two nodes.
//
// Greeting. Where there is a key, each side shows first that it has it: the hello does not leave before the listener
// has, and the listener believes no hello that does not carry the connector's tag. Neither side waits: both are asked again
// until something has come.
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

/// The abstract name of a socket of this endpoint where there is no key: another version of what is said there is not found
/// rather than refused.
std::string plain_name(const char* kind, std::uint32_t version, const SocketAddress& endpoint);

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

/// The connector's side.
class HelloSender {
 public:
  enum class State : std::uint8_t {
    waiting,  ///< the listener has not shown the key
    sent,     ///< the hello has left: what is written to the shared memory is for the listener
    failed,   ///< the listener does not have the key, or is gone
  };

  HelloSender(const KeyedSocket& connection, ConstBytes hello, os::Descriptor file, Random& random);

  /// To be called once, before anything else. False: `reason` says why.
  bool begin(const os::LocalSocket& socket, std::string& reason);
  State state() const { return state_; }
  /// Looks whether the listener has answered (a system call).
  State advance(os::LocalSocket& socket);

 private:
  bool send_hello(const os::LocalSocket& socket, std::string& reason);

  std::optional<seal::LocalProof> proof_;  ///< where there is a key
  std::vector<std::byte> hello_;           ///< with space for the tag
  os::Descriptor file_;
  State state_ = State::waiting;
};

/// A connection, and how it begins.
struct GreetedSocket {
  os::LocalSocket socket;
  HelloSender greeting;
};

/// The listener's side of a connection that has come in.
class HelloReceiver {
 public:
  using Receipt = os::LocalSocket::Receipt;

  HelloReceiver(KeyedSocket connection, Random& random);

  const os::LocalSocket& socket() const { return socket_; }
  os::LocalSocket take_socket() { return std::move(socket_); }
  /// The connector has been shown the key, and its hello is the next to come.
  bool answered() const { return answered_; }
  /// Takes what has come, and answers it. `message`: the connector's hello has come, and is believed.
  Receipt receive(Bytes hello, os::Descriptor& file);
  /// After a misfit: the hello does not carry the connector's tag.
  bool forged() const { return forged_; }

 private:
  Receipt answer();
  Receipt receive_signed(Bytes hello, os::Descriptor& file);

  os::LocalSocket socket_;
  std::optional<seal::LocalProof> proof_;  ///< where there is a key
  bool answered_ = false;
  bool forged_ = false;
};

}  // namespace cluster::shm
