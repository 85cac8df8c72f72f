#include "relay/relay_key.h"

#include <cstring>
#include <utility>

namespace cluster::relay {

RelayKey::RelayKey(std::shared_ptr<const crypto::Cryptography> cryptography, ConstBytes bytes)
    : cryptography_(std::move(cryptography)) {
  crypto::DerivedKey key;
  crypto::DerivedKey id;
  std::memcpy(key.bytes().data(), bytes.data(), key.bytes().size());
  crypto::expand(*cryptography_, key, "id of a relay key", {}, id);
  std::memcpy(id_.data(), id.bytes().data(), id_.size());
  crypto::expand(*cryptography_, key, "frames of a relay", {}, frames_);
}

seal::Tag RelayKey::tag_of(ConstBytes frame) const {
  crypto::Digest digest;
  cryptography_->hmac(frames_.bytes(), wire::relay_tagged_part(frame), digest);
  seal::Tag tag;
  std::memcpy(tag.data(), digest.data(), tag.size());
  return tag;
}

wire::RelayFrame RelayKey::seal(wire::RelayMessage message) const {
  message.key_id = id_;
  wire::RelayFrame frame = wire::encode(message);
  const seal::Tag tag = tag_of(frame);
  std::memcpy(frame.data() + wire::relay_tagged_part(frame).size(), tag.data(), tag.size());
  return frame;
}

bool RelayKey::verify(ConstBytes frame) const {
  return cryptography_->equal(tag_of(frame).data(), frame.data() + wire::relay_tagged_part(frame).size(),
                              sizeof(seal::Tag));
}

void derive_relay_key(const seal::JobKey& job, crypto::DerivedKey& out) { job.derive("relay", out); }

JobRelayKeys relay_keys(const seal::JobKeys& keys) {
  JobRelayKeys made;
  for (const auto& job : keys) {
    crypto::DerivedKey key;
    derive_relay_key(*job, key);
    made.push_back(std::make_shared<const RelayKey>(job->shared_cryptography(), std::as_const(key).bytes()));
  }
  return made;
}

}  // namespace cluster::relay
