#include "seal/local_proof.h"

#include <vector>

namespace cluster::seal {
namespace {

std::array<std::uint64_t, 4> joined(const std::array<std::uint64_t, 2>& one,
                                    const std::array<std::uint64_t, 2>& other) {
  return {one[0], one[1], other[0], other[1]};
}

}  // namespace

std::string hidden_socket_name(const JobKey& key, std::string_view plain) {
  static constexpr char kDigits[] = "0123456789abcdef";
  const std::string message = std::string("socket name ").append(plain);
  std::string name(plain.substr(0, plain.find('/') + 1));
  for (const std::byte each :
       key.authenticate(JobKey::Purpose::memory, as_bytes(message.data(), message.size()))) {
    name.push_back(kDigits[std::to_integer<unsigned>(each) >> 4]);
    name.push_back(kDigits[std::to_integer<unsigned>(each) & 15]);
  }
  return name;
}

LocalProof::LocalProof(std::shared_ptr<const JobKey> key, std::string_view socket_name, Random& random)
    : key_(std::move(key)), socket_name_(socket_name), own_nonce_{random.next(), random.next()} {}

bool LocalProof::verify_answer(const ProofAnswer& answer) {
  nonces_ = joined(own_nonce_, answer.nonce);
  return key_->equal(authenticate(Role::listener, {}), answer.tag.data());
}

bool LocalProof::answer(const ProofRequest& request, ProofAnswer& answer) {
  if (request.magic != ProofRequest::kMagic) return false;
  nonces_ = joined(request.nonce, own_nonce_);
  answer = {own_nonce_, authenticate(Role::listener, {})};
  return true;
}

bool LocalProof::verify(ConstBytes message, const Tag& tag) const {
  return key_->equal(authenticate(Role::connector, message), tag.data());
}

/// Different contents never have the same encoding, because nonces and role have fixed sizes and the socket
/// name ends with a zero.
Tag LocalProof::authenticate(Role sender, ConstBytes message) const {
  std::vector<std::byte> content;
  const ConstBytes parts[] = {as_bytes(nonces_.data(), sizeof nonces_), as_bytes(&sender, sizeof sender),
                              as_bytes(socket_name_.c_str(), socket_name_.size() + 1), message};
  for (const ConstBytes part : parts) content.insert(content.end(), part.begin(), part.end());
  return key_->authenticate(JobKey::Purpose::memory, content);
}

}  // namespace cluster::seal
