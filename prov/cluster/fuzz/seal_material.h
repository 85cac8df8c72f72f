// Keys for fuzzers of what is sealed. Material that all inputs have in common is made once, since making keys is slow.
// What the fuzzers try is sealed with 'k' by those that have the key, and with 'x' by those that have another.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "os/libcrypto.h"
#include "seal/job_key.h"

namespace cluster::fuzz {

inline seal::Credentials credentials(seal::Mode mode, char material) {
  static std::string reason;
  static const std::shared_ptr<const crypto::Cryptography> library = os::load_libcrypto(reason);
  if (library == nullptr) __builtin_trap();
  static std::map<char, std::shared_ptr<const seal::JobKey>> keys;
  std::shared_ptr<const seal::JobKey>& key = keys[material];
  if (key == nullptr) {
    const std::string bytes(32, material);
    key = std::make_shared<seal::JobKey>(library, as_bytes(bytes.data(), bytes.size()));
  }
  return {{key}, mode};
}

}  // namespace cluster::fuzz
