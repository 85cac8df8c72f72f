#include "provider/key_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>

#include "os/descriptor.h"
#include "os/libcrypto.h"
#include "os/secret_memory.h"

namespace cluster::provider {
namespace {

constexpr std::size_t kFileMax = 4096;
constexpr std::size_t kDigitsMin = 2 * seal::kMaterialMin;
constexpr std::size_t kDigitsMax = 128;
constexpr std::size_t kKeysMax = 2;
constexpr const char* kHowToMake = " (to generate one: \"umask 077; openssl rand -hex 32 > FILE\")";

constexpr const char* kVariable = "FI_CLUSTER_KEY";

seal::Mode mode_of(const std::string& security) {
  return security == "encrypt" ? seal::Mode::encrypt : seal::Mode::auth;
}

/// Converts hexadecimal digits, which parse_keys() has already checked, to bytes.
std::vector<std::byte> bytes_of(std::string_view digits) {
  const auto value = [](char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0 ? c - '0' : (c | 0x20) - 'a' + 10;
  };
  std::vector<std::byte> bytes;
  bytes.reserve(digits.size() / 2);
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(value(digits[i]) << 4 | value(digits[i + 1])));
  }
  return bytes;
}

/// Removes the next item from the text and returns it. Returns an empty text if there is no further item.
std::string_view take_item(std::string_view& text) {
  constexpr std::string_view kSeparators = ", \t\r\n";
  for (;;) {
    const std::size_t begin = text.find_first_not_of(kSeparators);
    if (begin == std::string_view::npos) return {};
    text.remove_prefix(begin);
    if (text.front() != '#') break;
    text.remove_prefix(std::min(text.find('\n'), text.size()));
  }
  const std::string_view item = text.substr(0, text.find_first_of(kSeparators));
  text.remove_prefix(item.size());
  return item;
}

}  // namespace

std::optional<std::string> read_secret_file(const std::string& path, std::string& error) {
  const auto refuse = [&](const std::string& why) {
    error = "the key file " + path + " is refused: " + why;
    return std::nullopt;
  };
  const os::Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  if (!file && errno == ELOOP) return refuse("it is a symbolic link; name the file itself");
  if (!file) return refuse(os::failed("open") + kHowToMake);
  struct stat status {};
  if (fstat(file.number(), &status) != 0) return refuse(os::failed("fstat"));
  if (!S_ISREG(status.st_mode)) return refuse("it is not a regular file");
  if (status.st_uid != geteuid()) return refuse("it belongs to another user; copy it to a file of your own");
  if ((status.st_mode & 077) != 0)
    return refuse("others may read or write it: run \"chmod 600 " + path + "\"");
  std::array<char, kFileMax + 1> buffer;
  const ssize_t got = read(file.number(), buffer.data(), buffer.size());
  std::optional<std::string> text;
  if (got >= 0 && got <= static_cast<ssize_t>(kFileMax))
    text.emplace(buffer.data(), static_cast<std::size_t>(got));
  crypto::wipe(as_bytes(buffer.data(), buffer.size()));
  if (got < 0) return refuse(os::failed("read"));
  if (!text) return refuse("it is longer than 4096 bytes");
  return text;
}

std::optional<std::vector<std::string>> parse_keys(std::string_view text, std::string& error) {
  std::vector<std::string> keys;
  for (std::string_view item = take_item(text); !item.empty(); item = take_item(text)) {
    const bool digits =
        std::all_of(item.begin(), item.end(), [](unsigned char c) { return std::isxdigit(c) != 0; });
    if (!digits || item.size() % 2 != 0 || item.size() < kDigitsMin || item.size() > kDigitsMax) {
      error = "a key must have an even number of hexadecimal digits, from 32 to 128";
    } else if (keys.size() == kKeysMax) {
      error = "it contains more than two keys (at most two are allowed)";
    } else {
      keys.emplace_back(item);
      continue;
    }
    for (std::string& key : keys) crypto::wipe(key);
    return std::nullopt;
  }
  if (!keys.empty()) return keys;
  error = "it contains no key";
  return std::nullopt;
}

/// Reads the text of the keys from the file or the option. Returns false if there is an error or no key.
bool KeySource::read_text(std::string& text, KeyFindings& findings) const {
  const std::string& path = options_.text(Options::Name::key_file);
  if (!path.empty()) {
    options_.wipe(Options::Name::key);  // the key in the file takes precedence
    std::optional<std::string> read = read_secret_file(path, findings.error);
    if (!read) return false;
    text = std::move(*read);
    findings.source = "FI_CLUSTER_KEY_FILE";
    return true;
  }
  text = options_.text(Options::Name::key);
  findings.source = kVariable;
  return !text.empty();
}

KeyFindings KeySource::find(ConstBytes auth_key) {
  KeyFindings findings;
  const std::lock_guard guard(lock_);
  const std::string& security = options_.text(Options::Name::security);
  Materials materials;
  if (!auth_key.empty()) {
    findings.source = "the application's auth_key";
    materials.emplace_back(auth_key.begin(), auth_key.end());
  } else if (options_.text(Options::Name::key_file).empty() && !derived_.empty()) {
    findings.source = kVariable;
    findings.credentials = seal::Credentials{.keys = derived_, .mode = mode_of(security)};
    return findings;
  } else if (std::string text; read_text(text, findings)) {
    std::string why;
    std::optional<std::vector<std::string>> keys = parse_keys(text, why);
    crypto::wipe(text);
    if (!keys) {
      findings.error = findings.source + " is refused: " + why + kHowToMake;
      return findings;
    }
    for (std::string& key : *keys) {
      materials.push_back(bytes_of(key));
      crypto::wipe(key);
    }
  } else {
    if (findings.error.empty() && security != "auto") {
      findings.error =
          "FI_CLUSTER_SECURITY=" + security + " demands a key: set FI_CLUSTER_KEY_FILE" + kHowToMake;
    }
    return findings;
  }
  derive(materials, findings);
  return findings;
}

void KeySource::derive(Materials& materials, KeyFindings& findings) {
  std::string why;
  if (cryptography_ == nullptr) cryptography_ = os::prefer_ipsec_mb(os::load_libcrypto(why));
  seal::Credentials credentials;
  credentials.mode = mode_of(options_.text(Options::Name::security));
  for (std::vector<std::byte>& material : materials) {
    if (cryptography_ != nullptr) {
      credentials.keys.push_back(std::allocate_shared<seal::JobKey>(os::SecretAllocator<seal::JobKey>{},
                                                                    cryptography_, ConstBytes(material)));
    }
    crypto::wipe(material);
  }
  if (cryptography_ != nullptr) {
    if (findings.source == kVariable) {
      derived_ = credentials.keys;
      options_.wipe(Options::Name::key);
    }
    findings.credentials = std::move(credentials);
  } else {
    findings.error = "the key cannot be used: " + why;
  }
}

}  // namespace cluster::provider
