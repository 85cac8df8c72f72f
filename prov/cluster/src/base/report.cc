#include "base/report.h"

#include <algorithm>

namespace cluster {
namespace {

constexpr std::size_t kDigitsMax = 20;

bool printable(char c) { return c >= ' ' && c <= '~'; }

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= kFactNameMax && text[0] >= 'a' && text[0] <= 'z' &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
}

bool is_number(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  if (text.empty() || text.size() > kDigitsMax || (text[0] == '0' && text.size() > 1)) return false;
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool is_value(Fact::Kind kind, std::string_view text) {
  switch (kind) {
    case Fact::Kind::text:
      return text.size() <= kFactValueMax && std::all_of(text.begin(), text.end(), printable);
    case Fact::Kind::number: return is_number(text);
    case Fact::Kind::flag: return text == "yes" || text == "no";
  }
  return false;
}

std::optional<Fact> read_fact(std::string_view line) {
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  const auto kind = static_cast<Fact::Kind>(line[0]);
  const std::string_view name = line.substr(1, space - 1);
  const std::string_view value = line.substr(space + 1);
  if (!is_name(name) || !is_value(kind, value)) return std::nullopt;
  return Fact{std::string(name), kind, std::string(value)};
}

}  // namespace

Record& Record::text(std::string_view name, std::string_view value) {
  std::string clean(value.substr(0, kFactValueMax));
  std::replace_if(
      clean.begin(), clean.end(), [](char c) { return !printable(c); }, '?');
  facts_.push_back({std::string(name), Fact::Kind::text, std::move(clean)});
  return *this;
}

Record& Record::number(std::string_view name, std::uint64_t value) {
  facts_.push_back({std::string(name), Fact::Kind::number, std::to_string(value)});
  return *this;
}

Record& Record::flag(std::string_view name, bool value) {
  facts_.push_back({std::string(name), Fact::Kind::flag, value ? "yes" : "no"});
  return *this;
}

const std::string& Record::operator[](std::string_view name) const {
  static const std::string nothing;
  const auto found =
      std::find_if(facts_.begin(), facts_.end(), [&](const Fact& fact) { return fact.name == name; });
  return found == facts_.end() ? nothing : found->value;
}

std::string write_report(const Report& report) {
  std::string text;
  for (const Record& record : report) {
    text.append("[").append(record.kind()).append("\n");
    for (const Fact& fact : record.facts()) {
      text.append(1, static_cast<char>(fact.kind)).append(fact.name).append(" ");
      text.append(fact.value).append("\n");
    }
  }
  return text;
}

std::optional<Report> read_report(std::string_view text) {
  Report report;
  if (text.size() > kReportBytesMax) return std::nullopt;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos || end == 0) return std::nullopt;
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    if (line[0] == '[') {
      if (!is_name(line.substr(1))) return std::nullopt;
      report.emplace_back(line.substr(1));
      continue;
    }
    std::optional<Fact> fact = read_fact(line);
    if (!fact || report.empty()) return std::nullopt;
    report.back().facts_.push_back(std::move(*fact));
  }
  return report;
}

}  // namespace cluster
