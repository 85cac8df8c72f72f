#include "seal/local_proof.h"

#include <algorithm>
#include <cstring>

namespace cluster::seal {
namespace {

/// The message of a tag, without allocating.
class SignedContent {
 public:
  /// False if it would not fit.
  bool append(ConstBytes bytes) {
    if (bytes.size() > bytes_.size() - size_) return false;
    std::copy(bytes.begin(), bytes.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(size_));
    size_ += bytes.size();
    return true;
  }
  ConstBytes bytes() const { return ConstBytes(bytes_).first(size_); }

 private:
  std::array<std::byte, 512> bytes_;
  std::size_t size_ = 0;
};

std::array<std::uint64_t, 4> joined(const std::array<std::uint64_t, 2>& one,
                                    const std::array<std::uint64_t, 2>& other) {
  return {one[0], one[1], other[0], other[1]};
}

}  // namespace

std::string hidden_socket_name(const JobKey& key, std::string_view plain) {
  static constexpr std::string_view kLabel = "socket name ";
  static constexpr char kDigits[] = "0123456789abcdef";
  const std::string message = std::string(kLabel).append(plain);
  Tag tag;
  if (!key.authenticate(JobKey::Purpose::memory, as_bytes(message.data(), message.size()), tag)) return {};
  std::string name(plain.substr(0, plain.find('/') + 1));
  for (const std::byte each : tag) {
    name.push_back(kDigits[std::to_integer<unsigned>(each) >> 4]);
    name.push_back(kDigits[std::to_integer<unsigned>(each) & 15]);
  }
  return name;
}

LocalProof::LocalProof(std::shared_ptr<const JobKey> key, std::string_view socket_name, Random& random)
    : key_(std::move(key)), socket_name_(socket_name), own_nonce_{random.next(), random.next()} {}

ProofRequest LocalProof::request() {
  ProofRequest request;
  request.nonce = own_nonce_;
  return request;
}

bool LocalProof::verify_answer(const ProofAnswer& answer) {
  nonces_ = joined(own_nonce_, answer.nonce);
  Tag expected;
  return authenticate(Role::listener, {}, expected) &&
         key_->cryptography().equal(expected.data(), answer.tag.data(), expected.size());
}

bool LocalProof::answer(const ProofRequest& request, ProofAnswer& answer) {
  if (request.magic != ProofRequest::kMagic) return false;
  nonces_ = joined(request.nonce, own_nonce_);
  answer.nonce = own_nonce_;
  return authenticate(Role::listener, {}, answer.tag);
}

bool LocalProof::verify(ConstBytes message, const Tag& tag) const {
  Tag expected;
  return authenticate(Role::connector, message, expected) &&
         key_->cryptography().equal(expected.data(), tag.data(), expected.size());
}

/// Different contents never are the same bytes: the nonces and the role have fixed sizes, and the name of a socket ends in a zero.
bool LocalProof::authenticate(Role sender, ConstBytes message, Tag& tag) const {
  SignedContent content;
  return content.append(as_bytes(nonces_.data(), sizeof nonces_)) &&
         content.append(as_bytes(&sender, sizeof sender)) &&
         content.append(as_bytes(socket_name_.c_str(), socket_name_.size() + 1)) && content.append(message) &&
         key_->authenticate(JobKey::Purpose::memory, content.bytes(), tag);
}

}  // namespace cluster::seal
