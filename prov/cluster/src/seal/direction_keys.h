// The keys of one direction of an association. Each follows from the job key, what the two sides are, and its number;
// the newest, the one before it and the one behind it may be in use, so that many are kept, and no more are made than
// are asked for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>

#include "seal/job_key.h"

namespace cluster::seal {

/// Names of endpoints as they go into keys: family, port, IP.
inline constexpr std::size_t kNameSize = 19;

class DirectionKeys {
 public:
  using Use = crypto::Cryptography::Direction;
  /// Bytes that determine the keys: mode, cipher, two salts, two names, and at the end the number of the key, which is
  /// left 0 here.
  static constexpr std::size_t kContextSize = 2 + 2 * 16 + 2 * kNameSize + 8;
  using Context = std::array<std::byte, kContextSize>;

  DirectionKeys(const Context& context, crypto::Cipher cipher, Use use)
      : context_(context), cipher_(cipher), use_(use) {}

  ConstBytes context() const { return context_; }
  /// Null: the library failed.
  crypto::Aead* get(const JobKey& job, std::uint64_t number);

 private:
  static constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();
  struct NumberedKey {
    std::uint64_t number = kNone;
    std::unique_ptr<crypto::Aead> aead;
  };

  Context context_;
  crypto::Cipher cipher_;
  Use use_;
  std::array<NumberedKey, 3> keys_;  ///< by the remainder of their numbers
};

}  // namespace cluster::seal
