// What is to be measured: items such as `latency:8`, `rate:8:64` or `bandwidth:1m:16`, which name a
// measure, the bytes of one message, and how many are under way at a time.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace perf {

struct Item {
  std::string measure;
  std::size_t bytes = 0;
  unsigned window = 1;

  std::string text() const;
};

constexpr std::size_t kBytesMax = std::size_t{256} << 20;
constexpr unsigned kWindowMax = 1024;

/// Throws std::invalid_argument with a sentence for the user.
Item parse_item(const std::string& text);
std::vector<Item> parse_plan(const std::vector<std::string>& words);

}  // namespace perf
