// Interfaces of the cryptographic primitives that this provider uses. Well-maintained libraries implement
// them (os/libcrypto.h). When this process loads a library, it tests each primitive once. Therefore a later
// call fails only if there is no memory (std::bad_alloc). Only HKDF, which is built on the primitives, is
// implemented here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace cluster::crypto {

// Key material. A Secret cannot be copied by accident, and its destructor wipes its bytes. The owner of a
// Secret must keep these bytes out of core dumps and swap (os/secret_memory.h).

/// Zeroes the bytes. The compiler cannot remove this function call, although nothing reads the bytes
/// afterwards.
inline void wipe(Bytes bytes) { explicit_bzero(bytes.data(), bytes.size()); }
/// Zeroes the characters and empties the text.
inline void wipe(std::string& text) {
  wipe(as_bytes(text.data(), text.size()));
  text.clear();
}

template <std::size_t N>
class Secret {
 public:
  Secret() = default;
  Secret(const Secret&) = delete;
  Secret& operator=(const Secret&) = delete;
  ~Secret() { wipe(bytes_); }

  Bytes bytes() { return bytes_; }
  ConstBytes bytes() const { return bytes_; }

 private:
  std::array<std::byte, N> bytes_{};
};

/// AEADs (RFC 5116) with a nonce of 12 bytes and a tag of 16 bytes.
enum class Cipher : std::uint8_t {
  aes128_gcm = 1,         ///< used if both sides return true from prefers_aes()
  chacha20_poly1305 = 2,  ///< RFC 8439
};

inline constexpr std::size_t kNonceSize = 12;
inline constexpr std::size_t kTagSize = 16;
inline constexpr std::size_t kDigestSize = 32;

using Nonce = std::array<std::byte, kNonceSize>;
using Digest = std::array<std::byte, kDigestSize>;

constexpr std::size_t key_size(Cipher cipher) { return cipher == Cipher::aes128_gcm ? 16 : 32; }

/// A cipher with one key for one direction. Only one thread may use it at a time. The caller must never seal
/// with the same nonce twice.
class Aead {
 public:
  virtual ~Aead() = default;
  /// Encrypts `text` in place and writes the tag, which authenticates `text` and `associated`. If `text` is
  /// empty, the tag authenticates only `associated`.
  virtual void seal(const Nonce& nonce, ConstBytes associated, Bytes text, std::byte* tag) = 0;
  /// Decrypts `text` in place. Returns false if the tag is wrong. In this case, `text` is undefined. Compares
  /// tags in constant time.
  virtual bool open(const Nonce& nonce, ConstBytes associated, Bytes text, const std::byte* tag) = 0;
};

class Cryptography {
 public:
  virtual ~Cryptography() = default;
  /// Computes HMAC-SHA256 (RFC 2104). Any thread may call this function.
  virtual void hmac(ConstBytes key, ConstBytes message, Digest& out) const = 0;
  /// Returns true if the bytes are equal. The time that this takes does not depend on the bytes.
  virtual bool equal(const std::byte* one, const std::byte* other, std::size_t size) const = 0;
  enum class Direction : std::uint8_t { seal, open };
  /// `key` has key_size(cipher) bytes.
  virtual std::unique_ptr<Aead> make_aead(Cipher cipher, ConstBytes key, Direction direction) const = 0;
  /// Returns true if AES-GCM is probably faster here than ChaCha20-Poly1305.
  virtual bool prefers_aes() const = 0;
};

// HKDF (RFC 5869) with SHA-256, limited to what seal/ needs: keys of at most one digest.

using DerivedKey = Secret<kDigestSize>;

/// HKDF-Extract. Derives a uniform key from key material of any length.
void extract(const Cryptography& cryptography, std::string_view salt, ConstBytes material, DerivedKey& out);
/// HKDF-Expand with one digest as output. `label` names the purpose of the key, and `context` names the two
/// sides that use it. Together they must have at most 200 bytes. No label may be a prefix of another.
void expand(const Cryptography& cryptography, const DerivedKey& key, std::string_view label,
            ConstBytes context, DerivedKey& out);

}  // namespace cluster::crypto
