// The key that all processes of a job have, and what is made of it. A process that has it is a member of the job. Nothing here tells members
// apart, or protects one from another.
//
//   key material --HKDF-Extract--> job key --HKDF-Expand--> id             8 bytes, in the clear: which key
//                                                           request key    association requests
//                                                           keep-alive key keep-alives and their answers
//                                                           memory key     connections inside a node
//                                                           pair keys      one per direction, see association.h
//
// The object does not keep the material itself. It lives in memory that is left out of core dumps where its owner can arrange that
// (os/secret_memory.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "crypto/cryptography.h"

namespace cluster::seal {

/// How much a key protects. Both sides use the same, or do not talk.
enum class Mode : std::uint8_t {
  auth = 1,     ///< frames are authenticated; what they carry can be read
  encrypt = 2,  ///< what they carry is encrypted as well: everything but the frame header
};

using KeyId = std::array<std::uint8_t, 8>;
using Tag = std::array<std::byte, crypto::kTagSize>;

/// Shortest material of a key, bytes.
inline constexpr std::size_t kMaterialMin = 16;

class JobKey {
 public:
  JobKey(std::shared_ptr<const crypto::Cryptography> cryptography, ConstBytes material);

  const crypto::Cryptography& cryptography() const { return *cryptography_; }
  const KeyId& id() const { return id_; }

  enum class Purpose : std::uint8_t { request, keep_alive, memory };
  /// The first bytes of an HMAC-SHA256 of the message.
  Tag authenticate(Purpose purpose, ConstBytes message) const;
  bool verify(Purpose purpose, ConstBytes message, const std::byte* tag) const;
  /// The same with the key that follows from `label` and `context`.
  Tag authenticate(std::string_view label, ConstBytes context, ConstBytes message) const;
  bool equal(const Tag& one, const std::byte* other) const {
    return cryptography_->equal(one.data(), other, one.size());
  }
  std::unique_ptr<crypto::Aead> make_aead(std::string_view label, ConstBytes context, crypto::Cipher cipher,
                                          crypto::Cryptography::Direction direction) const;

 private:
  Tag tag_of(const crypto::DerivedKey& key, ConstBytes message) const;

  std::shared_ptr<const crypto::Cryptography> cryptography_;
  KeyId id_{};
  crypto::DerivedKey job_;
  std::array<crypto::DerivedKey, 3> purposes_;  ///< by Purpose
};

using JobKeys = std::vector<std::shared_ptr<const JobKey>>;

/// What an endpoint seals with: the first key, and further ones that it accepts.
struct Credentials {
  JobKeys keys;
  Mode mode = Mode::auth;
};

}  // namespace cluster::seal
