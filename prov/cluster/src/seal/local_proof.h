// How two processes of one node prove to each other that they have the key of the job. These messages are the
// first ones over a local socket:
//
//   connector -- ProofRequest {nonce} -->         listener
//   connector <-- ProofAnswer {nonce, tag} --     listener    the listener has the key
//   connector -- its first message, and a tag --> listener    the connector has the key and wrote the message
//
// A tag is an HMAC, computed with the memory key of the job. It covers the role of its sender, the name of
// the socket, both nonces and the message. So recorded messages are useless, and nobody can answer a process
// with that process's own tag. Nobody can redirect a connector to another endpoint either.
//
// The name in the tag is the name that the listener holds. If another user holds the name that the connector
// looks for, the listener holds an alternative to that name (os/local_socket.h). Two sockets in a network
// namespace never have the same name. So a process that relays messages between the two sides cannot deceive
// them, because its socket has another name.
//
// The name of the socket is an HMAC, too. So a process without the key can neither look for an endpoint nor
// take the endpoint's name first. All users see the names that are in use (/proc/net/unix). If a process
// without the key takes the name of an endpoint that has ended, the process receives requests but cannot
// answer them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/environment.h"
#include "seal/job_key.h"

namespace cluster::seal {

/// ProofRequest and ProofAnswer are sent as they lie in memory, because the two processes run on one host.
struct ProofRequest {
  static constexpr std::uint64_t kMagic = 0x666f6f72702d6c63;  // "cl-proof"

  std::uint64_t magic = kMagic;
  std::array<std::uint64_t, 2> nonce{};
};

struct ProofAnswer {
  std::array<std::uint64_t, 2> nonce{};
  Tag tag{};
};

/// Returns the name of a listener that has a key. `plain`: the name that it would have without a key.
std::string hidden_socket_name(const JobKey& key, std::string_view plain);

/// The proofs of one side of one connection.
class LocalProof {
 public:
  /// `socket_name` is the name that the listener holds.
  LocalProof(std::shared_ptr<const JobKey> key, std::string_view socket_name, Random& random);

  // --- the connector ---
  ProofRequest request() const { return {.nonce = own_nonce_}; }
  /// Returns true if the answer proves that the listener has the key.
  bool verify_answer(const ProofAnswer& answer);
  /// Returns the tag of the first message.
  Tag sign(ConstBytes message) const { return authenticate(Role::connector, message); }

  // --- the listener ---
  /// Creates the answer. Returns false if `request` is malformed.
  bool answer(const ProofRequest& request, ProofAnswer& answer);
  /// Returns true if the tag proves that the connector has the key and has written this message.
  bool verify(ConstBytes message, const Tag& tag) const;

 private:
  enum class Role : std::uint8_t { connector = 1, listener = 2 };

  Tag authenticate(Role sender, ConstBytes message) const;

  std::shared_ptr<const JobKey> key_;
  std::string socket_name_;
  std::array<std::uint64_t, 2> own_nonce_;
  std::array<std::uint64_t, 4> nonces_{};  ///< the connector's nonce first
};

}  // namespace cluster::seal
