// Keys for tests, by the library that the product uses. They are made of texts, so that two endpoints of one
// test have the same.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include "os/libcrypto.h"
#include "seal/job_key.h"

namespace cluster::test {

inline std::shared_ptr<const crypto::Cryptography> libcrypto() {
  static std::string reason;
  static const std::shared_ptr<const crypto::Cryptography> library = os::load_libcrypto(reason);
  EXPECT_NE(library, nullptr) << reason;
  return library;
}

/// The same material gives the same key.
inline seal::Credentials credentials(std::initializer_list<std::string_view> materials,
                                     seal::Mode mode = seal::Mode::auth) {
  seal::Credentials result;
  result.mode = mode;
  for (const std::string_view material : materials) {
    result.keys.push_back(
        std::make_shared<seal::JobKey>(libcrypto(), as_bytes(material.data(), material.size())));
  }
  return result;
}

}  // namespace cluster::test
