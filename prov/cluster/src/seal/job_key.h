// The key that all processes of a job share, and the keys that are derived from it. Every process with the
// key is a member of the job. The key does not protect members from each other, because each of them can
// impersonate every other.
//
//   key material --HKDF-Extract--> job key --HKDF-Expand--> id             8 bytes, not secret: names the key
//                                                           request key    association requests
//                                                           keep-alive key keep-alives and their answers
//                                                           memory key     connections inside a node
//                                                           pair keys      one per direction (association.h)
//                                                           relay key      relays (relay/relay_key.h)
//
// A JobKey does not keep the key material. If possible, its owner places the JobKey in memory that is not
// part of core dumps (os/secret_memory.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "crypto/cryptography.h"

namespace cluster::seal {

/// How the frames are protected. Both sides must use the same mode.
enum class Mode : std::uint8_t {
  auth = 1,     ///< frames are authenticated, and anybody can read their content
  encrypt = 2,  ///< in addition, everything after the frame header is encrypted
};

using KeyId = std::array<std::uint8_t, 8>;
using Tag = std::array<std::byte, crypto::kTagSize>;

/// Key material must have at least this many bytes.
inline constexpr std::size_t kMaterialMin = 16;

class JobKey {
 public:
  JobKey(std::shared_ptr<const crypto::Cryptography> cryptography, ConstBytes material);

  const crypto::Cryptography& cryptography() const { return *cryptography_; }
  std::shared_ptr<const crypto::Cryptography> shared_cryptography() const { return cryptography_; }
  const KeyId& id() const { return id_; }

  enum class Purpose : std::uint8_t { request, keep_alive, memory };
  /// Returns the tag of the message: the first bytes of its HMAC-SHA256 with the key for this purpose.
  Tag authenticate(Purpose purpose, ConstBytes message) const;
  /// Returns true if `tag` is the tag of the message for this purpose.
  bool verify(Purpose purpose, ConstBytes message, const std::byte* tag) const;
  /// Returns the tag of the message with a key that is derived from the job key, `label` and `context`.
  Tag authenticate(std::string_view label, ConstBytes context, ConstBytes message) const;
  /// Compares two tags in constant time.
  bool equal(const Tag& one, const std::byte* other) const {
    return cryptography_->equal(one.data(), other, one.size());
  }
  /// Derives a key that shows nothing about the job key or its other keys, so it may be given away.
  void derive(std::string_view label, crypto::DerivedKey& out) const {
    crypto::expand(*cryptography_, job_, label, {}, out);
  }
  std::unique_ptr<crypto::Aead> make_aead(std::string_view label, ConstBytes context, crypto::Cipher cipher,
                                          crypto::Cryptography::Direction direction) const;

 private:
  Tag tag_of(const crypto::DerivedKey& key, ConstBytes message) const;

  std::shared_ptr<const crypto::Cryptography> cryptography_;
  KeyId id_{};
  crypto::DerivedKey job_;
  std::array<crypto::DerivedKey, 3> purposes_;  ///< indexed by Purpose
};

using JobKeys = std::vector<std::shared_ptr<const JobKey>>;

/// The keys of an endpoint. The endpoint prefers the first key, and accepts frames of all keys.
struct Credentials {
  JobKeys keys;
  Mode mode = Mode::auth;
};

}  // namespace cluster::seal
