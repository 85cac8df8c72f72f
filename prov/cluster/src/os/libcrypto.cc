#include "os/libcrypto.h"

#include <dlfcn.h>

#include <array>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "os/cancellation.h"

namespace cluster::os {
namespace {

using crypto::Aead;
using crypto::Cipher;
using crypto::Cryptography;
using crypto::Digest;
using crypto::Nonce;

template <typename Signature>
using Pointer = Signature*;

/// The functions of libcrypto that this file uses. Their types are the same in versions 1.1 and 3. Objects of
/// the library are opaque pointers.
struct Functions {
  Pointer<int(std::uint64_t options, const void* settings)> init_crypto;
  Pointer<const void*()> sha256;
  Pointer<unsigned char*(const void* digest, const void* key, int key_size, const unsigned char* message,
                         std::size_t size, unsigned char* out, unsigned* out_size)>
      hmac;
  Pointer<int(const void* one, const void* other, std::size_t size)> memory_compare;
  Pointer<const void*()> aes_128_gcm;
  Pointer<const void*()> chacha20_poly1305;
  Pointer<void*()> context_new;
  Pointer<void(void* context)> context_free;
  Pointer<int(void* context, int what, int size, void* data)> context_control;
  Pointer<int(void* context, const void* cipher, void* engine, const unsigned char* key,
              const unsigned char* nonce, int seals)>
      cipher_init;
  Pointer<int(void* context, unsigned char* out, int* out_size, const unsigned char* in, int size)>
      cipher_update;
  Pointer<int(void* context, unsigned char* out, int* out_size)> cipher_final;
};

// Constants of libcrypto's interface. They are the same in versions 1.1 and 3.
constexpr std::uint64_t kNoAtExit = 0x00080000;  // OPENSSL_INIT_NO_ATEXIT
constexpr int kGetTag = 0x10;                    // EVP_CTRL_AEAD_GET_TAG
constexpr int kSetTag = 0x11;                    // EVP_CTRL_AEAD_SET_TAG

const unsigned char* octets(const std::byte* bytes) { return reinterpret_cast<const unsigned char*>(bytes); }
unsigned char* octets(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }

/// Checks the result of a call that fails only if memory is short.
void expect(bool done) {
  if (!done) throw std::bad_alloc();
}

class EvpAead final : public Aead {
 public:
  EvpAead(const Functions& functions, void* context) : functions_(functions), context_(context) {}
  ~EvpAead() override { functions_.context_free(context_); }  // wipes the key
  EvpAead(const EvpAead&) = delete;
  EvpAead& operator=(const EvpAead&) = delete;

  void seal(const Nonce& nonce, ConstBytes associated, Bytes text, std::byte* tag) override {
    int size = 0;
    unsigned char none[16];
    expect(pass(nonce, associated, text, 1) && functions_.cipher_final(context_, none, &size) == 1 &&
           functions_.context_control(context_, kGetTag, crypto::kTagSize, tag) == 1);
  }

  bool open(const Nonce& nonce, ConstBytes associated, Bytes text, const std::byte* tag) override {
    std::array<std::byte, crypto::kTagSize> expected;
    std::memcpy(expected.data(), tag, expected.size());
    int size = 0;
    unsigned char none[16];
    return pass(nonce, associated, text, 0) &&
           functions_.context_control(context_, kSetTag, crypto::kTagSize, expected.data()) == 1 &&
           functions_.cipher_final(context_, none, &size) == 1;
  }

 private:
  bool pass(const Nonce& nonce, ConstBytes associated, Bytes text, int seals) {
    return functions_.cipher_init(context_, nullptr, nullptr, nullptr, octets(nonce.data()), seals) == 1 &&
           update(nullptr, associated) && update(octets(text.data()), text);
  }
  /// Encrypts or decrypts `bytes` into `out`. If `out` is null, only authenticates the bytes.
  bool update(unsigned char* out, ConstBytes bytes) {
    int size = 0;
    return bytes.empty() || functions_.cipher_update(context_, out, &size, octets(bytes.data()),
                                                     static_cast<int>(bytes.size())) == 1;
  }

  const Functions& functions_;
  void* context_;
};

class Libcrypto final : public Cryptography {
 public:
  explicit Libcrypto(const Functions& functions) : functions_(functions) {}

  void hmac(ConstBytes key, ConstBytes message, Digest& out) const override {
    expect(functions_.hmac(functions_.sha256(), key.data(), static_cast<int>(key.size()),
                           octets(message.data()), message.size(), octets(out.data()), nullptr) != nullptr);
  }
  bool equal(const std::byte* one, const std::byte* other, std::size_t size) const override {
    return functions_.memory_compare(one, other, size) == 0;
  }
  std::unique_ptr<Aead> make_aead(Cipher cipher, ConstBytes key, Direction direction) const override {
    void* const context = functions_.context_new();
    expect(context != nullptr);
    auto aead = std::make_unique<EvpAead>(functions_, context);
    const void* const algorithm =
        cipher == Cipher::aes128_gcm ? functions_.aes_128_gcm() : functions_.chacha20_poly1305();
    const int seals = direction == Direction::seal ? 1 : 0;
    expect(algorithm != nullptr &&
           functions_.cipher_init(context, algorithm, nullptr, octets(key.data()), nullptr, seals) == 1);
    return aead;
  }
  bool prefers_aes() const override {
#if defined(__x86_64__)
    return __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul");
#else
    return true;  // servers of other architectures usually have AES instructions
#endif
  }

 private:
  Functions functions_;
};

template <typename Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

bool find_all(void* library, Functions& f) {
  return find(library, "OPENSSL_init_crypto", f.init_crypto) && find(library, "EVP_sha256", f.sha256) &&
         find(library, "HMAC", f.hmac) && find(library, "CRYPTO_memcmp", f.memory_compare) &&
         find(library, "EVP_aes_128_gcm", f.aes_128_gcm) &&
         find(library, "EVP_chacha20_poly1305", f.chacha20_poly1305) &&
         find(library, "EVP_CIPHER_CTX_new", f.context_new) &&
         find(library, "EVP_CIPHER_CTX_free", f.context_free) &&
         find(library, "EVP_CIPHER_CTX_ctrl", f.context_control) &&
         find(library, "EVP_CipherInit_ex", f.cipher_init) &&
         find(library, "EVP_CipherUpdate", f.cipher_update) &&
         find(library, "EVP_CipherFinal_ex", f.cipher_final);
}

/// Tests the library. Seals and opens the text "abc" with a key and a nonce of zeros, and computes
/// HMAC-SHA256("key", "abc"). Returns true if the first four bytes of each result are correct. A library may
/// be built or configured without one of these primitives. This test detects a missing primitive when the
/// library is loaded, and not only when a frame cannot be sealed.
bool computes(const Cryptography& library) try {
  static constexpr unsigned char kGcm[] = {0x60, 0x33, 0x35, 0x91};
  static constexpr unsigned char kChacha[] = {0x1f, 0xbc, 0x04, 0xe4};
  static constexpr unsigned char kHmac[] = {0x9c, 0x19, 0x6e, 0x32};
  const std::array<std::byte, 32> key{};
  const std::array<std::byte, 3> text{std::byte{'a'}, std::byte{'b'}, std::byte{'c'}};
  const auto tag_begins = [&](Cipher cipher, const unsigned char* expected) {
    const ConstBytes its_key = ConstBytes(key).first(key_size(cipher));
    std::array<std::byte, 3> sealed = text;
    std::array<std::byte, crypto::kTagSize> tag;
    library.make_aead(cipher, its_key, Cryptography::Direction::seal)->seal({}, {}, sealed, tag.data());
    return std::memcmp(tag.data(), expected, 4) == 0 &&
           library.make_aead(cipher, its_key, Cryptography::Direction::open)
               ->open({}, {}, sealed, tag.data()) &&
           sealed == text;
  };
  Digest digest;
  library.hmac(as_bytes("key", 3), text, digest);
  return std::memcmp(digest.data(), kHmac, 4) == 0 && tag_begins(Cipher::aes128_gcm, kGcm) &&
         tag_begins(Cipher::chacha20_poly1305, kChacha);
} catch (const std::bad_alloc&) {
  return false;
}

// --- AES-128-GCM by libIPSec_MB ---

/// The expanded key of libIPSec_MB, and its state during a call. Both structs have space to spare: version
/// 1.3 of the library needs 1008 and 88 bytes.
struct alignas(64) Key {
  std::array<std::byte, 2048> bytes;
};
struct alignas(64) State {
  std::array<std::byte, 512> bytes;
};

/// The functions of libIPSec_MB that this file uses, in the variant for this processor. None of them fails.
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

  void seal(const Nonce& nonce, ConstBytes associated, Bytes text, std::byte* tag) override {
    functions_.seal(&key_, &state_, text.data(), text.data(), text.size(), nonce.data(), associated.data(),
                    associated.size(), tag, crypto::kTagSize);
  }

  bool open(const Nonce& nonce, ConstBytes associated, Bytes text, const std::byte* tag) override {
    std::array<std::byte, crypto::kTagSize> expected;
    for (std::size_t i = 0; i < expected.size(); ++i)
      expected[i] = ~tag[i];  // so that a function that does nothing accepts no frame
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
  IpsecMb(const GcmFunctions& functions, std::shared_ptr<const Cryptography> other)
      : functions_(functions), other_(std::move(other)) {}

  void hmac(ConstBytes key, ConstBytes message, Digest& out) const override {
    other_->hmac(key, message, out);
  }
  bool equal(const std::byte* one, const std::byte* other, std::size_t size) const override {
    return other_->equal(one, other, size);
  }
  std::unique_ptr<Aead> make_aead(Cipher cipher, ConstBytes key, Direction direction) const override {
    if (cipher != Cipher::aes128_gcm) return other_->make_aead(cipher, key, direction);
    return std::make_unique<IpsecMbAead>(functions_, *other_, key);
  }
  bool prefers_aes() const override { return true; }

 private:
  GcmFunctions functions_;
  std::shared_ptr<const Cryptography> other_;
};

// Bits with which libIPSec_MB describes the processor (IMB_FEATURE_*). They are the same in all versions of
// libIPSec_MB.so.1.
constexpr std::uint64_t kAes = 1u << 1 | 1u << 2 | 1u << 4;  // AES, PCLMULQDQ, SSE 4.2
constexpr std::uint64_t kAvx2 = kAes | 1u << 6;
constexpr std::uint64_t kAvx512 = kAvx2 | 0x1Fu << 7;              // F, DQ, CD, BW, VL
constexpr std::uint64_t kWideAes = kAvx512 | 1u << 12 | 1u << 13;  // VAES, VPCLMULQDQ

/// Returns the suffix that the names of the functions for this processor have. Returns null if the processor
/// lacks the instructions in kAes.
const char* kind_of_processor(std::uint64_t features) {
  const auto has = [features](std::uint64_t wanted) { return (features & wanted) == wanted; };
  return has(kWideAes)  ? "vaes_avx512"
         : has(kAvx512) ? "avx512"
         : has(kAvx2)   ? "avx_gen4"
         : has(kAes)    ? "sse"
                        : nullptr;
}

bool find_functions(void* library, const std::string& kind, GcmFunctions& f) {
  return find(library, ("aes_gcm_pre_128_" + kind).c_str(), f.expand) &&
         find(library, ("aes_gcm_enc_128_" + kind).c_str(), f.seal) &&
         find(library, ("aes_gcm_dec_128_" + kind).c_str(), f.open);
}

/// Returns true if `library` seals test frames as `other` does, opens them, and rejects a wrong tag. One of
/// the test frames has no text.
bool agrees(const Cryptography& other, const Cryptography& library) {
  std::array<std::byte, 700> plain;
  plain.fill(std::byte{0x5A});
  const auto aead = [&plain](const Cryptography& by, Cryptography::Direction direction) {
    return by.make_aead(Cipher::aes128_gcm, ConstBytes(plain).first(16), direction);
  };
  for (const std::size_t associated : {0, 33, 700}) {
    std::array<std::byte, 700> one = plain;
    std::array<std::byte, 700> two = plain;
    std::array<std::byte, crypto::kTagSize> tag;
    std::array<std::byte, crypto::kTagSize> its_tag;
    const ConstBytes header = ConstBytes(plain).first(associated);
    aead(library, Cryptography::Direction::seal)
        ->seal({}, header, Bytes(one).subspan(associated), tag.data());
    aead(other, Cryptography::Direction::seal)
        ->seal({}, header, Bytes(two).subspan(associated), its_tag.data());
    if (one != two || tag != its_tag) return false;
    const auto opening = aead(library, Cryptography::Direction::open);
    if (!opening->open({}, header, Bytes(one).subspan(associated), tag.data()) || one != plain) return false;
    tag[5] ^= std::byte{1};
    if (opening->open({}, header, Bytes(two).subspan(associated), tag.data())) return false;
  }
  return true;
}

}  // namespace

std::shared_ptr<const Cryptography> load_libcrypto(std::string& reason) {
  const PutOffCancellation off;  // init_crypto() may read a file, and reading is a cancellation point
  void* library = nullptr;
  for (const char* const name : {"libcrypto.so.3", "libcrypto.so.1.1"}) {
    if (library == nullptr) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  if (library == nullptr) {
    reason = "there is no libcrypto.so.3 or libcrypto.so.1.1 (install OpenSSL)";
    return nullptr;
  }
  Functions functions;
  // Tells the library not to clean up in a handler of exit(), because the application may close endpoints
  // after that handler has run.
  if (!find_all(library, functions) || functions.init_crypto(kNoAtExit, nullptr) != 1) {
    reason = "the libcrypto that was found lacks functions (install OpenSSL 3)";
    return nullptr;
  }
  auto loaded = std::make_shared<const Libcrypto>(functions);
  if (!computes(*loaded)) {
    reason =
        "the libcrypto that was found has no AES-GCM, ChaCha20-Poly1305 or HMAC-SHA256 (is it in FIPS mode?)";
    return nullptr;
  }
  return loaded;
}

std::shared_ptr<const Cryptography> prefer_ipsec_mb(std::shared_ptr<const Cryptography> other) {
  void* const library = other != nullptr ? dlopen("libIPSec_MB.so.1", RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (library == nullptr) return other;
  const auto features = reinterpret_cast<Pointer<std::uint64_t()>>(dlsym(library, "imb_get_feature_flags"));
  const char* const kind = features != nullptr ? kind_of_processor(features()) : nullptr;
  GcmFunctions functions;
  if (kind == nullptr || !find_functions(library, kind, functions)) return other;
  auto loaded = std::make_shared<const IpsecMb>(functions, other);
  return agrees(*other, *loaded) ? loaded : other;
}

}  // namespace cluster::os
