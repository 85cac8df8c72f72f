#include "report_words.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace cluster::info {

const Record& find(const Report& report, const char* kind) {
  static const Record nothing("");
  for (const Record& record : report) {
    if (record.kind() == kind) return record;
  }
  return nothing;
}

std::string printable(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

std::string duration_text(const std::string& ns) {
  if (ns.empty()) return "";
  double value = std::strtod(ns.c_str(), nullptr);
  const std::pair<const char*, double> units[] = {{"ns", 1000}, {"us", 1000}, {"ms", 1000}, {"s", 60},
                                                  {"min", 60},  {"h", 24},    {"d", 1e9}};
  for (const auto& [unit, next] : units) {
    if (value < next) {
      char text[32];
      std::snprintf(text, sizeof text, value < 100 ? "%.1f %s" : "%.0f %s", value, unit);
      return text;
    }
    value /= next;
  }
  return ns;
}

std::string counted(std::size_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

double number_of(const Record& record, const char* fact) {
  return std::strtod(record[fact].c_str(), nullptr);
}

}  // namespace cluster::info
