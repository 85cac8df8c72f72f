#include "os/ipsec_mb.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "crypto/secret.h"

namespace cluster::os {
namespace {

using crypto::Aead;
using crypto::Cipher;
using crypto::Cryptography;
using crypto::Nonce;

constexpr std::size_t kAlignment = 64;

/// The library's expanded key, and its state between the calls for one frame: more bytes than any version of it uses
/// (1.3: 1008 and 88).
struct alignas(kAlignment) Key {
  std::array<std::byte, 2048> bytes;
};
struct alignas(kAlignment) State {
  std::array<std::byte, 512> bytes;
};

template <typename Signature>
using Pointer = Signature*;

/// The functions that are used, for one kind of processor. None of them fails.
struct GcmFunctions {
  Pointer<void(const void* key, Key* expanded)> expand;
  using OneCall = void(const Key*, State*, std::byte* out, const std::byte* in, std::uint64_t size, const std::byte* nonce,
                       const std::byte* associated, std::uint64_t associated_size, std::byte* tag, std::uint64_t tag_size);
  Pointer<OneCall> seal;
  Pointer<OneCall> open;
  Pointer<void(const Key*, State*, const std::byte* nonce, const std::byte* associated, std::uint64_t size)> begin;
  Pointer<void(const Key*, State*, std::byte* out, const std::byte* in, std::uint64_t size)> update;
  Pointer<void(const Key*, State*, std::byte* tag, std::uint64_t tag_size)> finish;
  Pointer<void(const Key*, State*, const std::byte* nonce, std::uint64_t nonce_size)> mac_begin;
  Pointer<void(const Key*, State*, const std::byte* in, std::uint64_t size)> mac_update;
  Pointer<void(const Key*, State*, std::byte* tag, std::uint64_t tag_size)> mac_finish;
};

class IpsecMbAead final : public Aead {
 public:
  IpsecMbAead(const GcmFunctions& functions, const Cryptography& other, ConstBytes key) : functions_(functions), other_(other) {
    functions_.expand(key.data(), &key_);
  }
  ~IpsecMbAead() override {
    crypto::wipe(key_.bytes);
    crypto::wipe(state_.bytes);
  }
  IpsecMbAead(const IpsecMbAead&) = delete;
  IpsecMbAead& operator=(const IpsecMbAead&) = delete;

  bool seal(const Nonce& nonce, std::span<const ConstBytes> associated, std::span<const ConstBytes> plain, std::byte* out,
            std::byte* tag) override {
    std::array<std::byte, kJoinedMax> joined;
    const bool fits = joins(associated);
    if (plain.empty() && !fits) {
      authenticate(nonce, associated, tag);
      return true;
    }
    if (!fits) return false;
    const ConstBytes header = join(associated, joined);
    if (plain.size() <= 1) {
      const ConstBytes text = plain.empty() ? ConstBytes() : plain.front();
      functions_.seal(&key_, &state_, out, text.data(), text.size(), nonce.data(), header.data(), header.size(), tag, crypto::kTagSize);
      return true;
    }
    functions_.begin(&key_, &state_, nonce.data(), header.data(), header.size());
    for (const ConstBytes piece : plain) {
      functions_.update(&key_, &state_, out, piece.data(), piece.size());
      out += piece.size();
    }
    functions_.finish(&key_, &state_, tag, crypto::kTagSize);
    return true;
  }

  bool open(const Nonce& nonce, std::span<const ConstBytes> associated, Bytes sealed, const std::byte* tag) override {
    std::array<std::byte, crypto::kTagSize> expected;
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = ~tag[i];  // a call that does nothing opens nothing
    std::array<std::byte, kJoinedMax> joined;
    if (joins(associated)) {
      const ConstBytes header = join(associated, joined);
      functions_.open(&key_, &state_, sealed.data(), sealed.data(), sealed.size(), nonce.data(), header.data(), header.size(),
                      expected.data(), expected.size());
    } else if (sealed.empty()) {
      authenticate(nonce, associated, expected.data());
    } else {
      return false;
    }
    return other_.equal(expected.data(), tag, expected.size());
  }

 private:
  /// Copying so many bytes costs less than a call for each piece of them.
  static constexpr std::size_t kJoinedMax = 512;

  static bool joins(std::span<const ConstBytes> pieces) {
    std::size_t total = 0;
    for (const ConstBytes piece : pieces) total += piece.size();
    return pieces.size() == 1 || total <= kJoinedMax;
  }
  static ConstBytes join(std::span<const ConstBytes> pieces, std::array<std::byte, kJoinedMax>& joined) {
    if (pieces.size() == 1) return pieces.front();
    auto end = joined.begin();
    for (const ConstBytes piece : pieces) end = std::copy(piece.begin(), piece.end(), end);
    return {joined.data(), static_cast<std::size_t>(end - joined.begin())};
  }
  void authenticate(const Nonce& nonce, std::span<const ConstBytes> pieces, std::byte* tag) {
    functions_.mac_begin(&key_, &state_, nonce.data(), nonce.size());
    for (const ConstBytes piece : pieces) functions_.mac_update(&key_, &state_, piece.data(), piece.size());
    functions_.mac_finish(&key_, &state_, tag, crypto::kTagSize);
  }

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

  bool hmac(ConstBytes key, ConstBytes message, crypto::Digest& out) const override { return other_->hmac(key, message, out); }
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

// What the library says of the processor, the same in all versions (IMB_FEATURE_*).
constexpr std::uint64_t kAes = 1u << 1 | 1u << 2 | 1u << 4;   // AES, PCLMULQDQ, SSE 4.2
constexpr std::uint64_t kAvx2 = kAes | 1u << 6;
constexpr std::uint64_t kAvx512 = kAvx2 | 0x1Fu << 7;         // F, DQ, CD, BW, VL
constexpr std::uint64_t kWideAes = kAvx512 | 1u << 12 | 1u << 13;  // VAES, VPCLMULQDQ

/// How the functions for this processor are called; null if it has no AES instructions.
const char* kind_of_processor(std::uint64_t features) {
  const auto has = [features](std::uint64_t wanted) { return (features & wanted) == wanted; };
  return has(kWideAes) ? "vaes_avx512" : has(kAvx512) ? "avx512" : has(kAvx2) ? "avx_gen4" : has(kAes) ? "sse" : nullptr;
}

bool find_functions(void* library, const char* kind, GcmFunctions& f) {
  const auto find = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, (std::string(name) + kind).c_str()));
    return function != nullptr;
  };
  return find("aes_gcm_pre_128_", f.expand) && find("aes_gcm_enc_128_", f.seal) && find("aes_gcm_dec_128_", f.open) &&
         find("aes_gcm_init_128_", f.begin) && find("aes_gcm_enc_128_update_", f.update) &&
         find("aes_gcm_enc_128_finalize_", f.finish) && find("imb_aes_gmac_init_128_", f.mac_begin) &&
         find("imb_aes_gmac_update_128_", f.mac_update) && find("imb_aes_gmac_finalize_128_", f.mac_finish);
}

/// Frames of one and of several pieces, also empty ones, sealed by one library and opened by both; and not with another tag.
bool computes_what(const Cryptography& other, const Cryptography& library) {
  std::array<std::byte, 700> text;
  text.fill(std::byte{0x5A});
  const ConstBytes all(text);
  const ConstBytes pieces[] = {all.first(0), all.first(33), all.subspan(33, 600), all.subspan(633)};
  Nonce nonce;
  nonce.fill(std::byte{0xA5});
  const auto agree = [&](std::span<const ConstBytes> associated, std::span<const ConstBytes> plain, ConstBytes header) {
    const auto sealing = library.make_aead(Cipher::aes128_gcm, all.first(16), Cryptography::Direction::seal);
    const auto opening = other.make_aead(Cipher::aes128_gcm, all.first(16), Cryptography::Direction::open);
    std::array<std::byte, 700> sealed{};
    std::array<std::byte, crypto::kTagSize> tag;
    const Bytes body = Bytes(sealed).first(plain.empty() ? 0 : sealed.size());
    const auto own = library.make_aead(Cipher::aes128_gcm, all.first(16), Cryptography::Direction::open);
    if (sealing == nullptr || opening == nullptr || own == nullptr) return false;
    if (!sealing->seal(nonce, associated, plain, sealed.data(), tag.data())) return false;
    std::array<std::byte, 700> copy = sealed;
    const Bytes own_body = Bytes(copy).first(body.size());
    const bool opens = opening->open(nonce, {&header, 1}, body, tag.data()) && own->open(nonce, {&header, 1}, own_body, tag.data());
    tag[5] ^= std::byte{1};
    return opens && (body.empty() || (sealed == text && copy == text)) && !own->open(nonce, {&header, 1}, own_body, tag.data());
  };
  const std::span<const ConstBytes> whole(&all, 1);
  return agree(whole, {}, all) && agree(pieces, {}, all) && agree(whole.first(1), whole, all) && agree({&pieces[1], 1}, pieces, pieces[1]);
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
