// Finds the keys of an endpoint. They come from the application (auth_key), from a file, or from the
// environment. Any fault in a key is an error. Therefore no endpoint opens without the protection that the
// user has asked for.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "provider/options.h"
#include "seal/job_key.h"

namespace cluster::provider {

/// The keys of an endpoint that is being opened, or the reason why it must not be opened.
struct KeyFindings {
  std::optional<seal::Credentials> credentials;  ///< empty if the endpoint uses no key, or on error
  /// If the endpoint must not be opened, the cause and the remedy; otherwise empty.
  std::string error;
  std::string source;  ///< where the keys come from, as a text for the log

  seal::JobKeys job_keys() const { return credentials ? credentials->keys : seal::JobKeys{}; }
};

/// Finds and derives keys. There may be two keys: endpoints seal frames with the first key and accept frames
/// with either. `auth_key` is the application's key, or empty if the application has set none. After deriving
/// the keys from FI_CLUSTER_KEY, this object wipes the text of that option.
class KeySource {
 public:
  explicit KeySource(Options& options) : options_(options) {}

  KeyFindings find(ConstBytes auth_key);

 private:
  using Materials = std::vector<std::vector<std::byte>>;

  bool read_text(std::string& text, KeyFindings& findings) const;
  /// Derives the keys from `materials`, stores them in `findings`, and wipes `materials`.
  void derive(Materials& materials, KeyFindings& findings);

  Options& options_;
  seal::JobKeys derived_;  ///< derived from FI_CLUSTER_KEY, whose text was then wiped from the options
  std::mutex lock_;
  std::shared_ptr<const crypto::Cryptography> cryptography_;
};

/// Returns the text of a regular file that belongs to this user, that no other user may read or write, and
/// that has at most 4096 bytes. For any other file, returns nothing and sets `error` to the cause.
std::optional<std::string> read_secret_file(const std::string& path, std::string& error);
/// Parses one or two keys in hexadecimal digits, separated by white space or commas. Ignores comments, which
/// begin with # and end with the line. For any other text, returns nothing and sets `error` to the cause.
std::optional<std::vector<std::string>> parse_keys(std::string_view text, std::string& error);

}  // namespace cluster::provider
