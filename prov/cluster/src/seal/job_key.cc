#include "seal/job_key.h"

#include <cstring>

namespace cluster::seal {

bool JobKey::derive(ConstBytes material) {
  static constexpr std::array<std::string_view, 3> kLabels = {"association request", "keep-alive",
                                                              "shared memory"};
  const crypto::Cryptography& library = *cryptography_;
  if (!crypto::extract(library, "cluster provider, seal version 1", material, job_)) return false;
  crypto::DerivedKey id;
  if (!crypto::expand(library, job_, "key id", {}, id)) return false;
  std::memcpy(id_.data(), id.bytes().data(), id_.size());
  for (std::size_t i = 0; i < kLabels.size(); ++i) {
    if (!crypto::expand(library, job_, kLabels[i], {}, purposes_[i])) return false;
  }
  return true;
}

bool JobKey::first_bytes_of_hmac(const crypto::DerivedKey& key, ConstBytes message, Tag& tag) const {
  crypto::Digest digest;
  if (!cryptography_->hmac(key.bytes(), message, digest)) return false;
  std::memcpy(tag.data(), digest.data(), tag.size());
  return true;
}

bool JobKey::authenticate(Purpose purpose, ConstBytes message, Tag& tag) const {
  return first_bytes_of_hmac(purposes_[static_cast<std::size_t>(purpose)], message, tag);
}

bool JobKey::verify(Purpose purpose, ConstBytes message, const std::byte* tag) const {
  Tag expected;
  return authenticate(purpose, message, expected) &&
         cryptography_->equal(expected.data(), tag, expected.size());
}

bool JobKey::authenticate(std::string_view label, ConstBytes context, ConstBytes message, Tag& tag) const {
  crypto::DerivedKey key;
  return crypto::expand(*cryptography_, job_, label, context, key) && first_bytes_of_hmac(key, message, tag);
}

std::unique_ptr<crypto::Aead> JobKey::make_aead(std::string_view label, ConstBytes context,
                                                crypto::Cipher cipher,
                                                crypto::Cryptography::Direction direction) const {
  crypto::DerivedKey key;
  if (!crypto::expand(*cryptography_, job_, label, context, key)) return nullptr;
  const ConstBytes bytes = key.bytes();
  return cryptography_->make_aead(cipher, bytes.first(crypto::key_size(cipher)), direction);
}

}  // namespace cluster::seal
