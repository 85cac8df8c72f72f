#include "os/ipsec_mb.h"

#include <dlfcn.h>

#include <array>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

#include "crypto/cryptography.h"

namespace cluster::os {
namespace {

using crypto::Aead;
using crypto::Cipher;
using crypto::Cryptography;
using crypto::Nonce;

constexpr std::size_t kAlignment = 64;

/// The library's expanded key, and its state while it works on a frame: more bytes than any version uses (1.3: 1008 and 88).
struct alignas(kAlignment) Key {
  std::array<std::byte, 2048> bytes;
};
struct alignas(kAlignment) State {
  std::array<std::byte, 512> bytes;
};

template <typename Signature>
using Pointer = Signature*;

/// The functions that we use, for one kind of processor. None of them fails.
struct GcmFunctions {
  Pointer<void(const void* key, Key* expanded)> expand;
  using OneCall = void(const Key*, State*, std::byte* out, const std::byte* in, std::uint64_t size,
                       const std::byte* nonce, const std::byte* associated, std::uint64_t associated_size,
                       std::byte* tag, std::uint64_t tag_size);
  Pointer<OneCall> seal;
  Pointer<OneCall> open;
};

class IpsecMbAead final : public Aead {
 public:
  IpsecMbAead(const GcmFunctions& functions, const Cryptography& other, ConstBytes key)
      : functions_(functions), other_(other) {
    functions_.expand(key.data(), &key_);
  }
  ~IpsecMbAead() override {
    crypto::wipe(key_.bytes);
    crypto::wipe(state_.bytes);
  }
  IpsecMbAead(const IpsecMbAead&) = delete;
  IpsecMbAead& operator=(const IpsecMbAead&) = delete;

  bool seal(const Nonce& nonce, ConstBytes associated, Bytes text, std::byte* tag) override {
    functions_.seal(&key_, &state_, text.data(), text.data(), text.size(), nonce.data(), associated.data(),
                    associated.size(), tag, crypto::kTagSize);
    return true;
  }

  bool open(const Nonce& nonce, ConstBytes associated, Bytes text, const std::byte* tag) override {
    std::array<std::byte, crypto::kTagSize> expected;
    for (std::size_t i = 0; i < expected.size(); ++i)
      expected[i] = ~tag[i];  // so that a function that does nothing opens nothing
    functions_.open(&key_, &state_, text.data(), text.data(), text.size(), nonce.data(), associated.data(),
                    associated.size(), expected.data(), expected.size());
    return other_.equal(expected.data(), tag, expected.size());
  }

 private:
  const GcmFunctions& functions_;
  const Cryptography& other_;
  Key key_;
  State state_;
};

class IpsecMb final : public Cryptography {
 public:
  /// The library stays loaded: its objects outlive everything that could close it.
  IpsecMb(const GcmFunctions& functions, std::shared_ptr<const Cryptography> other)
      : functions_(functions), other_(std::move(other)) {}

  bool hmac(ConstBytes key, ConstBytes message, crypto::Digest& out) const override {
    return other_->hmac(key, message, out);
  }
  bool equal(const std::byte* one, const std::byte* other, std::size_t size) const override {
    return other_->equal(one, other, size);
  }
  std::unique_ptr<Aead> make_aead(Cipher cipher, ConstBytes key, Direction direction) const override {
    if (cipher != Cipher::aes128_gcm) return other_->make_aead(cipher, key, direction);
    if (key.size() < crypto::key_size(cipher)) return nullptr;
    return std::make_unique<IpsecMbAead>(functions_, *other_, key);
  }
  bool prefers_aes() const override { return true; }

 private:
  GcmFunctions functions_;
  std::shared_ptr<const Cryptography> other_;
};

// Bits by which the library describes the processor, the same in all versions (IMB_FEATURE_*).
constexpr std::uint64_t kAes = 1u << 1 | 1u << 2 | 1u << 4;  // AES, PCLMULQDQ, SSE 4.2
constexpr std::uint64_t kAvx2 = kAes | 1u << 6;
constexpr std::uint64_t kAvx512 = kAvx2 | 0x1Fu << 7;              // F, DQ, CD, BW, VL
constexpr std::uint64_t kWideAes = kAvx512 | 1u << 12 | 1u << 13;  // VAES, VPCLMULQDQ

/// The end of the names of the functions for this processor; null if it has no AES instructions.
const char* kind_of_processor(std::uint64_t features) {
  const auto has = [features](std::uint64_t wanted) { return (features & wanted) == wanted; };
  return has(kWideAes)  ? "vaes_avx512"
         : has(kAvx512) ? "avx512"
         : has(kAvx2)   ? "avx_gen4"
         : has(kAes)    ? "sse"
                        : nullptr;
}

bool find_functions(void* library, const char* kind, GcmFunctions& f) {
  const auto find = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(
        dlsym(library, (std::string(name) + kind).c_str()));
    return function != nullptr;
  };
  return find("aes_gcm_pre_128_", f.expand) && find("aes_gcm_enc_128_", f.seal) &&
         find("aes_gcm_dec_128_", f.open);
}

/// Seals frames of several lengths, also empty ones, by one library and opens them by both; with another tag they must not open.
bool computes_what(const Cryptography& other, const Cryptography& library) {
  std::array<std::byte, 700> text;
  text.fill(std::byte{0x5A});
  const ConstBytes all(text);
  Nonce nonce;
  nonce.fill(std::byte{0xA5});
  const auto agree = [&](std::size_t associated, std::size_t size) {
    const ConstBytes header = all.first(associated);
    const auto sealing = library.make_aead(Cipher::aes128_gcm, all.first(16), Cryptography::Direction::seal);
    const auto opening = other.make_aead(Cipher::aes128_gcm, all.first(16), Cryptography::Direction::open);
    const auto own = library.make_aead(Cipher::aes128_gcm, all.first(16), Cryptography::Direction::open);
    if (sealing == nullptr || opening == nullptr || own == nullptr) return false;
    std::array<std::byte, 700> one = text;
    std::array<std::byte, crypto::kTagSize> tag;
    if (!sealing->seal(nonce, header, Bytes(one).first(size), tag.data())) return false;
    if (size != 0 && std::memcmp(one.data(), text.data(), size) == 0) return false;
    std::array<std::byte, 700> copy = one;
    const bool opens = opening->open(nonce, header, Bytes(one).first(size), tag.data()) &&
                       own->open(nonce, header, Bytes(copy).first(size), tag.data());
    tag[5] ^= std::byte{1};
    return opens && one == text && copy == text &&
           !own->open(nonce, header, Bytes(copy).first(size), tag.data());
  };
  return agree(700, 0) && agree(33, 0) && agree(32, 700) && agree(64, 33) && agree(0, 16);
}

}  // namespace

std::shared_ptr<const Cryptography> prefer_ipsec_mb(std::shared_ptr<const Cryptography> other) {
  void* const library = other != nullptr ? dlopen("libIPSec_MB.so.1", RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (library == nullptr) return other;
  const auto features = reinterpret_cast<Pointer<std::uint64_t()>>(dlsym(library, "imb_get_feature_flags"));
  const char* const kind = features != nullptr ? kind_of_processor(features()) : nullptr;
  GcmFunctions functions;
  if (kind == nullptr || !find_functions(library, kind, functions)) return other;
  auto loaded = std::make_shared<const IpsecMb>(functions, other);
  return computes_what(*other, *loaded) ? loaded : other;
}

}  // namespace cluster::os
