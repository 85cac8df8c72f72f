#include "plan.h"

#include <stdexcept>

namespace perf {
namespace {

std::size_t parse_number(const std::string& text, const std::string& item) {
  std::size_t used = 0;
  unsigned long long value = 0;
  try {
    value = std::stoull(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  const std::string unit = text.substr(used);
  const unsigned shift = unit == "k" ? 10 : unit == "m" ? 20 : 0;
  if (used == 0 || (!unit.empty() && shift == 0) || value > kBytesMax >> shift) {
    throw std::invalid_argument("'" + item + "': '" + text + "' is no number up to 256m");
  }
  return static_cast<std::size_t>(value) << shift;
}

}  // namespace

std::string Item::text() const {
  return measure + ":" + std::to_string(bytes) + ":" + std::to_string(window);
}

Item parse_item(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char letter : text) {
    if (letter == ':') {
      parts.emplace_back();
    } else {
      parts.back() += letter;
    }
  }
  if (parts.size() < 2 || parts.size() > 3 || parts[0].empty()) {
    throw std::invalid_argument("'" + text + "' is not MEASURE:BYTES or MEASURE:BYTES:WINDOW");
  }
  Item item{parts[0], parse_number(parts[1], text), 1};
  if (parts.size() == 3) item.window = static_cast<unsigned>(parse_number(parts[2], text));
  if (item.window < 1 || item.window > kWindowMax) {
    throw std::invalid_argument("'" + text + "': the window may be 1 to " + std::to_string(kWindowMax));
  }
  return item;
}

std::vector<Item> parse_plan(const std::vector<std::string>& words) {
  std::vector<Item> plan;
  for (const std::string& word : words) plan.push_back(parse_item(word));
  return plan;
}

}  // namespace perf
