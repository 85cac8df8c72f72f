// The key by which a relay and the endpoints of a job recognise each other. It is derived from the job key,
// and nothing can be derived from it in return. Therefore an operator may give a relay this key alone. The
// relay then knows which endpoints belong to the job, but can neither open nor forge their frames.
#pragma once

#include <memory>
#include <vector>

#include "crypto/cryptography.h"
#include "seal/job_key.h"
#include "wire/relay_frame.h"

namespace cluster::relay {

class RelayKey {
 public:
  /// `bytes`: the relay key of a job, as derive_relay_key() writes it.
  RelayKey(std::shared_ptr<const crypto::Cryptography> cryptography, ConstBytes bytes);

  /// Not secret: names the key.
  const seal::KeyId& id() const { return id_; }
  /// Encodes the message with the id of this key, and writes its tag.
  wire::RelayFrame seal(wire::RelayMessage message) const;
  /// Returns true if a decoded frame has the tag that this key gives it.
  bool verify(ConstBytes frame) const;

 private:
  seal::Tag tag_of(ConstBytes frame) const;

  std::shared_ptr<const crypto::Cryptography> cryptography_;
  seal::KeyId id_{};
  crypto::DerivedKey frames_;
};

/// The relay keys of one job. While a job changes its key, there are two.
using JobRelayKeys = std::vector<std::shared_ptr<const RelayKey>>;

void derive_relay_key(const seal::JobKey& job, crypto::DerivedKey& out);
JobRelayKeys relay_keys(const seal::JobKeys& keys);

}  // namespace cluster::relay
