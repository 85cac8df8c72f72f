#include "sim/content.h"

#include <algorithm>

#include "sim/seeded_random.h"

namespace cluster::sim {
namespace {

std::uint64_t word_at(MessageNumber number, std::size_t index) {
  if (index == 0) return number;
  // This is fast, and two places in messages are unlikely to have the same value.
  const std::uint64_t mixed = (number * 0x9E3779B97F4A7C15u + index) * 0xD6E8FEB86659FD93u;
  return mixed ^ mixed >> 32;
}

}  // namespace

void fill_content(MessageNumber number, Bytes out) {
  for (std::size_t at = 0; at < out.size(); at += sizeof(std::uint64_t)) {
    const std::uint64_t word = word_at(number, at / sizeof word);
    std::memcpy(out.data() + at, &word, std::min(sizeof word, out.size() - at));
  }
}

MessageNumber number_in(ConstBytes content) {
  MessageNumber number = 0;
  std::memcpy(&number, content.data(), sizeof number);
  return number;
}

std::size_t first_wrong_byte(MessageNumber number, ConstBytes content, std::size_t from) {
  std::size_t at = 0;
  while (at < content.size()) {
    const std::uint64_t word = word_at(number, (from + at) / sizeof word);
    const std::size_t begin = (from + at) % sizeof word;
    const std::size_t length = std::min(sizeof word - begin, content.size() - at);
    const ConstBytes right = as_bytes(&word, sizeof word).subspan(begin, length);
    if (std::memcmp(content.data() + at, right.data(), length) != 0) {
      const auto wrong =
          std::mismatch(right.begin(), right.end(), content.begin() + static_cast<std::ptrdiff_t>(at));
      return at + static_cast<std::size_t>(wrong.first - right.begin());
    }
    at += length;
  }
  return content.size();
}

}  // namespace cluster::sim
