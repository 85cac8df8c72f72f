#include "sim/content.h"

#include <algorithm>

#include "sim/dice.h"

namespace cluster::sim {
namespace {

std::uint64_t word_at(MessageNumber number, std::size_t index) {
  if (index == 0) return number;
  // Cheap, and no two places of no two messages are likely to look alike.
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

std::size_t first_wrong_byte(MessageNumber number, ConstBytes content) {
  for (std::size_t at = 0; at < content.size(); at += sizeof(std::uint64_t)) {
    const std::uint64_t word = word_at(number, at / sizeof word);
    const std::size_t length = std::min(sizeof word, content.size() - at);
    if (std::memcmp(content.data() + at, &word, length) == 0) continue;
    const ConstBytes right = as_bytes(&word, length);
    const auto wrong =
        std::mismatch(right.begin(), right.end(), content.begin() + static_cast<std::ptrdiff_t>(at));
    return at + static_cast<std::size_t>(wrong.first - right.begin());
  }
  return content.size();
}

}  // namespace cluster::sim
