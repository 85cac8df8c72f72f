// The cryptographic primitives that this library uses, as interfaces: a library that is well kept implements
// them (os/libcrypto.h). No primitive is implemented here; what is made of them is in key_derivation.h.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/bytes.h"

namespace cluster::crypto {

/// AEADs (RFC 5116) with a nonce of 12 bytes and a tag of 16.
enum class Cipher : std::uint8_t {
  aes128_gcm = 1,         ///< where both processors have instructions for it
  chacha20_poly1305 = 2,  ///< RFC 8439
};

inline constexpr std::size_t kNonceSize = 12;
inline constexpr std::size_t kTagSize = 16;
inline constexpr std::size_t kDigestSize = 32;

using Nonce = std::array<std::byte, kNonceSize>;
using Digest = std::array<std::byte, kDigestSize>;

constexpr std::size_t key_size(Cipher cipher) { return cipher == Cipher::aes128_gcm ? 16 : 32; }

/// One key in one direction; not for several threads. The caller never uses a nonce twice.
class Aead {
 public:
  virtual ~Aead() = default;
  /// `text` is encrypted where it lies; the tag is written, which vouches for it and for `associated`. Without `text` it
  /// only authenticates.
  virtual bool seal(const Nonce& nonce, ConstBytes associated, Bytes text, std::byte* tag) = 0;
  /// The reverse. False, with `text` of no use, if the tag is wrong; tags are compared in constant time.
  virtual bool open(const Nonce& nonce, ConstBytes associated, Bytes text, const std::byte* tag) = 0;
};

class Cryptography {
 public:
  virtual ~Cryptography() = default;
  /// HMAC-SHA256 (RFC 2104); for any thread. False: the library failed, and `out` is of no use.
  virtual bool hmac(ConstBytes key, ConstBytes message, Digest& out) const = 0;
  /// True if the bytes are equal, in a time that does not depend on them.
  virtual bool equal(const std::byte* one, const std::byte* other, std::size_t size) const = 0;
  enum class Direction : std::uint8_t { seal, open };
  /// Null: the library failed.
  virtual std::unique_ptr<Aead> make_aead(Cipher cipher, ConstBytes key, Direction direction) const = 0;
  /// AES-GCM is faster here than ChaCha20-Poly1305.
  virtual bool prefers_aes() const = 0;
};

}  // namespace cluster::crypto
