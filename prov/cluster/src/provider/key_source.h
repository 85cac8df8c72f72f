// Finds the keys of an endpoint: from its application (auth_key), a file, or the environment. Every fault in a key is an error: an
// endpoint never opens without the protection that was asked for.
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

/// The keys for an endpoint that opens, or why it must not open.
struct KeyFindings {
  std::optional<seal::Credentials> credentials;  ///< nothing: there is no key, and none is demanded
  std::string error;                             ///< not empty: no endpoint may open; cause and cure
  std::string source;                            ///< in words for the log

  seal::JobKeys job_keys() const { return credentials ? credentials->keys : seal::JobKeys{}; }
};

/// There may be two keys: one that is used, and one that is accepted as well. `auth_key` is the application's; empty if it has set
/// none. The text of FI_CLUSTER_KEY is wiped once its keys are derived.
class KeySource {
 public:
  explicit KeySource(Options& options) : options_(options) {}

  KeyFindings find(ConstBytes auth_key);

 private:
  using Materials = std::vector<std::vector<std::byte>>;

  bool read_text(std::string& text, KeyFindings& findings) const;
  /// Into findings; the materials are wiped.
  void derive(Materials& materials, KeyFindings& findings);

  Options& options_;
  seal::JobKeys derived_;  ///< from FI_CLUSTER_KEY, whose text is no longer in the options
  std::mutex lock_;
  std::shared_ptr<const crypto::Cryptography> cryptography_;
};

/// The text of a file that only its owner can read; nothing, and the reason, for any other.
std::optional<std::string> read_secret_file(const std::string& path, std::string& error);
/// At most two keys in hexadecimal digits, separated by white space or commas. Comments from # to the end of a line are ignored.
/// Nothing, and the reason, for anything else.
std::optional<std::vector<std::string>> parse_keys(std::string_view text, std::string& error);

}  // namespace cluster::provider
