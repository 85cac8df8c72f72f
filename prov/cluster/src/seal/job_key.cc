#include "seal/job_key.h"

#include <cstring>
#include <utility>

namespace cluster::seal {

JobKey::JobKey(std::shared_ptr<const crypto::Cryptography> cryptography, ConstBytes material)
    : cryptography_(std::move(cryptography)) {
  static constexpr std::array<std::string_view, 3> kLabels = {"association request", "keep-alive",
                                                              "shared memory"};
  crypto::extract(*cryptography_, "cluster provider, seal version 1", material, job_);
  crypto::DerivedKey id;
  crypto::expand(*cryptography_, job_, "key id", {}, id);
  std::memcpy(id_.data(), id.bytes().data(), id_.size());
  for (std::size_t i = 0; i < kLabels.size(); ++i)
    crypto::expand(*cryptography_, job_, kLabels[i], {}, purposes_[i]);
}

Tag JobKey::tag_of(const crypto::DerivedKey& key, ConstBytes message) const {
  crypto::Digest digest;
  cryptography_->hmac(key.bytes(), message, digest);
  Tag tag;
  std::memcpy(tag.data(), digest.data(), tag.size());
  return tag;
}

Tag JobKey::authenticate(Purpose purpose, ConstBytes message) const {
  return tag_of(purposes_[static_cast<std::size_t>(purpose)], message);
}

bool JobKey::verify(Purpose purpose, ConstBytes message, const std::byte* tag) const {
  return equal(authenticate(purpose, message), tag);
}

Tag JobKey::authenticate(std::string_view label, ConstBytes context, ConstBytes message) const {
  crypto::DerivedKey key;
  crypto::expand(*cryptography_, job_, label, context, key);
  return tag_of(key, message);
}

std::unique_ptr<crypto::Aead> JobKey::make_aead(std::string_view label, ConstBytes context,
                                                crypto::Cipher cipher,
                                                crypto::Cryptography::Direction direction) const {
  crypto::DerivedKey key;
  crypto::expand(*cryptography_, job_, label, context, key);
  return cryptography_->make_aead(cipher, std::as_const(key).bytes().first(crypto::key_size(cipher)),
                                  direction);
}

}  // namespace cluster::seal
