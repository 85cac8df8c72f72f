// How two processes of one node prove to each other that they have the key of the job, before they exchange
// anything else over a local socket:
//
//   connector -- ProofRequest {nonce} -->         listener
//   connector <-- ProofAnswer {nonce, tag} --     listener    the listener has the key
//   connector -- its first message, and a tag --> listener    the connector has it, and wrote the message
//
// A tag is an HMAC under the job's memory key over the role of its sender, the name of the socket, both
// nonces and the message. So recorded messages are useless, and nobody can answer a side with its own tag.
// Nor can anybody lead a connector to an endpoint other than the one it called. The name in the tag is the
// one that the listener holds, which may be an alternative of the name that the connector looked for. Two
// sockets of a network namespace never have the same name. So a process that relays messages between the two
// sides, under another name, cannot deceive them.
//
// The name of the socket is an HMAC, too: a process without the key can neither look for an endpoint nor take
// its name before the endpoint does. All users see the names in use (/proc/net/unix). If a process takes a
// name after the owner has gone, it gets requests but cannot answer them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/environment.h"
#include "seal/job_key.h"

namespace cluster::seal {

/// Sent as it lies in memory, between processes of one host.
struct ProofRequest {
  static constexpr std::uint64_t kMagic = 0x666f6f72702d6c63;  // "cl-proof"

  std::uint64_t magic = kMagic;
  std::array<std::uint64_t, 2> nonce{};
};

struct ProofAnswer {
  std::array<std::uint64_t, 2> nonce{};
  Tag tag{};
};

/// Returns the name of a listener whose name without a key is `plain`.
std::string hidden_socket_name(const JobKey& key, std::string_view plain);

/// One side of one connection.
class LocalProof {
 public:
  /// `socket_name` is the listener's name.
  LocalProof(std::shared_ptr<const JobKey> key, std::string_view socket_name, Random& random);

  // --- the connector ---
  ProofRequest request() const { return {.nonce = own_nonce_}; }
  /// True if the listener has the key.
  bool verify_answer(const ProofAnswer& answer);
  /// Returns the tag of the first message.
  Tag sign(ConstBytes message) const { return authenticate(Role::connector, message); }

  // --- the listener ---
  /// Makes the answer. Returns false if `request` is not a request.
  bool answer(const ProofRequest& request, ProofAnswer& answer);
  /// True if the connector has the key and wrote this message.
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
