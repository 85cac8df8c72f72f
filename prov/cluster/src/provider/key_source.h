// Finds the keys of an endpoint: from its application (auth_key), a file, or the environment. Every fault in
// a key is an error, so no endpoint opens without the protection that the user asked for.
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

/// The keys of an endpoint that opens, or the reason why it must not open.
struct KeyFindings {
  std::optional<seal::Credentials> credentials;  ///< empty if there is no key and none is demanded
  std::string error;                             ///< cause and remedy; if not empty, no endpoint may open
  std::string source;                            ///< where the keys come from, in words for the log

  seal::JobKeys job_keys() const { return credentials ? credentials->keys : seal::JobKeys{}; }
};

/// There may be two keys: the first is used, the second is also accepted. `auth_key` is the application's
/// key; empty if it has set none. Once the keys of FI_CLUSTER_KEY are derived, its text is wiped.
class KeySource {
 public:
  explicit KeySource(Options& options) : options_(options) {}

  KeyFindings find(ConstBytes auth_key);

 private:
  using Materials = std::vector<std::vector<std::byte>>;

  bool read_text(std::string& text, KeyFindings& findings) const;
  /// Derives the keys into `findings`, and wipes the materials.
  void derive(Materials& materials, KeyFindings& findings);

  Options& options_;
  seal::JobKeys derived_;  ///< from FI_CLUSTER_KEY; its text is no longer in the options
  std::mutex lock_;
  std::shared_ptr<const crypto::Cryptography> cryptography_;
};

/// Returns the text of a file that only its owner can read; nothing, with the cause in `error`, for any other
/// file.
std::optional<std::string> read_secret_file(const std::string& path, std::string& error);
/// Parses at most two keys in hexadecimal digits, separated by white space or commas. Comments from # to the
/// end of a line are ignored. Returns nothing, with the cause in `error`, for any other text.
std::optional<std::vector<std::string>> parse_keys(std::string_view text, std::string& error);

}  // namespace cluster::provider
