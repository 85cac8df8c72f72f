// How a connection inside a node begins: the connector sends its hello, with a descriptor of shared memory beside it.
// Where there is a key the two sides have shown it to each other before (seal/local_proof.h): the hello does not leave
// before the listener has, and none is believed that does not carry the connector's tag.
//
// Neither side waits: both are asked again until something has come.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "os/descriptor.h"
#include "os/local_socket.h"
#include "seal/local_proof.h"
#include "shm/keyed_names.h"

namespace cluster::shm {

/// The connector's side.
class HelloSender {
 public:
  enum class State : std::uint8_t {
    waiting,  ///< the listener has not shown the key
    sent,     ///< the hello has left: what is written to the shared memory is for the listener
    failed,   ///< the listener has not the key, or is gone
  };

  HelloSender(const KeyedSocket& connection, ConstBytes hello, os::Descriptor file, Random& random);

  /// Once, before anything else; false with `reason`.
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
  enum class Receipt : std::uint8_t { hello, nothing, end, misfit, no_proof };

  HelloReceiver(KeyedSocket connection, Random& random);

  const os::LocalSocket& socket() const { return socket_; }
  os::LocalSocket take_socket() { return std::move(socket_); }
  /// The connector has been shown the key, and its hello is the next to come.
  bool answered() const { return answered_; }
  /// Takes what has come, and answers it. `hello` is believed if that is the result.
  Receipt receive(Bytes hello, os::Descriptor& file);

 private:
  Receipt answer();
  Receipt receive_signed(Bytes hello, os::Descriptor& file);

  os::LocalSocket socket_;
  std::optional<seal::LocalProof> proof_;  ///< where there is a key
  bool answered_ = false;
};

}  // namespace cluster::shm
