// How a connection inside a node begins. The connector finds the listener by its name, and sends a hello
// together with a descriptor of shared memory.
//
// Names. Without a key, the name of an endpoint's socket contains the endpoint's address. With keys, the
// endpoint has one socket name per key, and only processes with that key can compute the name
// (seal/local_proof.h). So endpoints with different keys do not find each other, nor does an endpoint with a
// key find one without. To each other they seem to be on different nodes.
//
// Greeting. With a key, each side first proves that it has the key. The connector sends its hello only after
// the listener's proof, and the listener accepts a hello only with the connector's tag. Neither side blocks:
// callers ask again until something has come.
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

/// The abstract name of a socket of this endpoint if there is no key. The name contains the version, so a
/// process with another version finds no socket at all.
std::string plain_name(const char* kind, std::uint32_t version, const SocketAddress& endpoint);

struct KeyedName {
  std::string socket;
  std::shared_ptr<const seal::JobKey> key;  ///< null: there is none
};

/// Returns one name for each key, or `plain` alone if there is no key.
std::vector<KeyedName> keyed_names(const std::string& plain, const seal::JobKeys& keys);

/// A connection, and the key that its socket name was made with. The listener may hold an alternative of that
/// name (os/local_socket.h); the kernel says which one.
struct KeyedSocket {
  os::LocalSocket socket;                   ///< empty: there is none
  std::shared_ptr<const seal::JobKey> key;  ///< null: there is none
};

/// Connects to the first of the names at which a process of this user listens, as os::connect_to_own() does.
KeyedSocket connect_to(const std::vector<KeyedName>& names, bool expected, std::string& reason,
                       bool* full = nullptr);

/// Listens to all names of one endpoint.
class KeyedListener {
 public:
  KeyedListener() = default;
  /// Returns an empty listener on failure; `reason` says why.
  static KeyedListener listen(const std::vector<KeyedName>& names, std::string& reason);

  explicit operator bool() const { return !sockets_.empty(); }
  /// Returns the next connection that came in, as os::LocalSocket::accept() does.
  KeyedSocket accept(std::string& reason, bool* exhausted = nullptr) const;
  /// Returns a descriptor that is readable when a connection waits.
  int descriptor() const {
    return wait_set_ != nullptr ? wait_set_->descriptor() : sockets_.front().socket.descriptor();
  }

 private:
  std::vector<KeyedSocket> sockets_;
  std::unique_ptr<os::WaitSet> wait_set_;  ///< null unless there are several sockets
};

/// The connector's side.
class HelloSender {
 public:
  enum class State : std::uint8_t {
    waiting,  ///< the listener has not proved that it has the key
    sent,     ///< the hello has left: the listener reads what is written to the shared memory
    failed,   ///< the listener does not have the key, or is gone
  };

  HelloSender(const KeyedSocket& connection, ConstBytes hello, os::Descriptor file, Random& random);

  /// Starts the greeting. Call it once, before anything else. Returns false on failure; `reason` says why.
  bool begin(const os::LocalSocket& socket, std::string& reason);
  State state() const { return state_; }
  /// Sends the hello if the listener has answered (a system call), and returns the new state.
  State advance(os::LocalSocket& socket);

 private:
  bool send_hello(const os::LocalSocket& socket, std::string& reason);

  std::optional<seal::LocalProof> proof_;  ///< empty if there is no key
  std::vector<std::byte> hello_;           ///< with space for the tag
  os::Descriptor file_;
  State state_ = State::waiting;
};

/// A connection and its greeting.
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
  /// True once this side has answered the connector's request: its hello comes next.
  bool answered() const { return answered_; }
  /// Reads what has come, and answers it. Returns `message` once the connector's hello has come and is
  /// authentic.
  Receipt receive(Bytes hello, os::Descriptor& file);
  /// After a misfit: true if the hello does not carry the connector's tag.
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
