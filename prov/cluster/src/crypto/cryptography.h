// The cryptographic primitives that this provider uses, as interfaces. A well-maintained library implements them (os/libcrypto.h), and has
// computed each of them once before it is used. So a call fails for lack of memory only (std::bad_alloc). Here is what is made of them: HKDF.
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

// Key material that leaves no trace: it is wiped when it goes, and never copied by accident. Where the bytes lie (core dumps, swap)
// is up to their owner (os/secret_memory.h).

/// Not left out by the compiler, though nothing reads the bytes afterwards.
inline void wipe(Bytes bytes) { explicit_bzero(bytes.data(), bytes.size()); }
/// The text is empty afterwards.
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
  /// Encrypts `text` where it lies and writes the tag, which vouches for it and for `associated`. With an empty `text` it only
  /// authenticates.
  virtual void seal(const Nonce& nonce, ConstBytes associated, Bytes text, std::byte* tag) = 0;
  /// The reverse. False if the tag is wrong: then `text` is useless. Tags are compared in constant time.
  virtual bool open(const Nonce& nonce, ConstBytes associated, Bytes text, const std::byte* tag) = 0;
};

class Cryptography {
 public:
  virtual ~Cryptography() = default;
  /// HMAC-SHA256 (RFC 2104); for any thread.
  virtual void hmac(ConstBytes key, ConstBytes message, Digest& out) const = 0;
  /// True if the bytes are equal, in a time that does not depend on them.
  virtual bool equal(const std::byte* one, const std::byte* other, std::size_t size) const = 0;
  enum class Direction : std::uint8_t { seal, open };
  /// `key` has key_size(cipher) bytes.
  virtual std::unique_ptr<Aead> make_aead(Cipher cipher, ConstBytes key, Direction direction) const = 0;
  /// True if AES-GCM is faster here than ChaCha20-Poly1305.
  virtual bool prefers_aes() const = 0;
};

// HKDF (RFC 5869) with SHA-256, as far as seal/ needs it: keys of at most one digest.

using DerivedKey = Secret<kDigestSize>;

/// HKDF-Extract: makes a uniform key of material of any length.
void extract(const Cryptography& cryptography, std::string_view salt, ConstBytes material, DerivedKey& out);
/// HKDF-Expand to one digest. `label` says what the key is for, `context` for which partners. Together they have at most 200 bytes, and
/// no label is the beginning of another.
void expand(const Cryptography& cryptography, const DerivedKey& key, std::string_view label,
            ConstBytes context, DerivedKey& out);

}  // namespace cluster::crypto
