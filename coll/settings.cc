#include "settings.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <sstream>

namespace coll {
namespace {

constexpr std::size_t kEnd = SIZE_MAX;
constexpr const char* kNames[kCalls] = {"barrier", "bcast", "allreduce", "allgather", "reduce"};

/// Parses a size such as "64K". Returns false if the text is invalid.
bool read_size(const std::string& text, std::size_t& size) {
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, size);
  if (error != std::errc()) return false;
  std::size_t unit = 1;
  if (rest != end && (*rest == 'K' || *rest == 'M')) unit = *rest == 'K' ? 1024 : 1024 * 1024;
  if (rest + (unit > 1) != end || size > kEnd / unit) return false;
  size *= unit;
  return true;
}

}  // namespace

const char* name_of(Call call) { return kNames[static_cast<std::size_t>(call)]; }

const Settings& Settings::get() {
  static const Settings settings(std::getenv("CLUSTER_COLL"));
  return settings;
}

Settings::Settings(const char* text) {
  ranges_.fill({0, kEnd});
  if (text == nullptr) return;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    if (word.empty() || read(word)) continue;
    error_ = "CLUSTER_COLL=" + std::string(text) + ": '" + word +
             "' is not off, on or report, nor barrier, bcast, allreduce, allgather or reduce with =off or "
             "=FROM-TO in bytes";
    ranges_.fill({1, 0});
    return;
  }
}

bool Settings::read(const std::string& word) {
  if (word == "report") return report_ = true;
  if (word == "on") {
    ranges_.fill({0, kEnd});
    return true;
  }
  if (word == "off") {
    ranges_.fill({1, 0});
    return true;
  }
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos) return false;
  const auto name = std::find(std::begin(kNames), std::end(kNames), word.substr(0, equals));
  if (name == std::end(kNames)) return false;
  Range& range = ranges_[static_cast<std::size_t>(name - std::begin(kNames))];
  const std::string value = word.substr(equals + 1);
  if (value == "off") {
    range = {1, 0};
    return true;
  }
  const std::size_t dash = value.find('-');
  if (dash == std::string::npos) return false;
  range = {0, kEnd};
  return (dash == 0 || read_size(value.substr(0, dash), range.from)) &&
         (dash + 1 == value.size() || read_size(value.substr(dash + 1), range.to));
}

/// Computes an FNV-1a hash.
std::uint64_t Settings::fingerprint() const {
  std::uint64_t hash = 14695981039346656037u;
  for (const Range& range : ranges_) {
    for (const std::size_t value : {range.from, range.to}) hash = (hash ^ value) * 1099511628211u;
  }
  return hash;
}

}  // namespace coll
