#include "json.h"

#include <algorithm>
#include <vector>

namespace cluster::info {
namespace {

/// A report of the provider has a dozen kinds. Each further one would cost a walk over the whole report.
constexpr std::size_t kKindsMax = 64;

bool is_single(const std::string& kind) {
  return kind == "host" || kind == "endpoint" || kind == "process" || kind == "counters";
}

std::string value_of(const Fact& fact) {
  switch (fact.kind) {
    case Fact::Kind::number: return fact.value;
    case Fact::Kind::flag: return fact.value == "yes" ? "true" : "false";
    case Fact::Kind::text: break;
  }
  return json_quoted(fact.value);
}

bool is_part_of_previous(const std::string& kind) { return kind == "rail"; }

/// The member with the rails of a peer, or nothing.
std::string parts_of(const Report& report, std::size_t record) {
  std::string objects;
  for (std::size_t i = record + 1; i < report.size() && is_part_of_previous(report[i].kind()); ++i) {
    objects += (objects.empty() ? "{" : ", {") + json_facts(report[i]) + "}";
  }
  return objects.empty() ? "" : ", \"rails\": [" + objects + "]";
}

}  // namespace

std::string json_quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

std::string json_facts(const Record& record) {
  std::string members;
  for (const Fact& fact : record.facts()) {
    if (!members.empty()) members += ", ";
    members += json_quoted(fact.name) + ": " + value_of(fact);
  }
  return members;
}

std::string json_members(const Report& report) {
  std::vector<std::string> kinds;
  for (const Record& record : report) {
    const bool known = std::find(kinds.begin(), kinds.end(), record.kind()) != kinds.end();
    if (!known && kinds.size() < kKindsMax && !is_part_of_previous(record.kind()))
      kinds.push_back(record.kind());
  }
  std::string members;
  for (const std::string& kind : kinds) {
    if (!members.empty()) members += ",\n";
    std::string objects;
    for (std::size_t i = 0; i < report.size(); ++i) {
      if (report[i].kind() != kind) continue;
      if (is_single(kind) && !objects.empty())
        break;  // a process that reports it twice spoils no other report
      if (!objects.empty()) objects += ",\n  ";
      objects += "{" + json_facts(report[i]) + parts_of(report, i) + "}";
    }
    members += is_single(kind) ? json_quoted(kind) + ": " + objects
                               : json_quoted(kind + "s") + ": [\n  " + objects + "]";
  }
  return members;
}

}  // namespace cluster::info
