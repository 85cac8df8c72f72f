#include "host_text.h"

#include <initializer_list>

#include "text_table.h"

namespace cluster::info {
namespace {

/// One table of all records of a kind: pairs of title and fact.
struct Cell {
  const char* title;
  const char* fact;
};

std::string table_of(const Report& report, const char* kind, std::initializer_list<Cell> cells) {
  std::vector<std::string> titles;
  for (const Cell& cell : cells) titles.emplace_back(cell.title);
  Table table(std::move(titles));
  for (const Record& record : report) {
    if (record.kind() != kind) continue;
    std::vector<std::string> row;
    for (const Cell& cell : cells) row.push_back(record[cell.fact]);
    table.add(std::move(row));
  }
  return table.empty() ? "  none\n" : table.text();
}

}  // namespace

std::string host_text(const Report& report) {
  std::string text;
  for (const Record& record : report) {
    if (record.kind() == "host") {
      text += record["host"] + ": " + record["kernel"] + ", " + record["processors"] +
              " processors; cluster " + record["provider_version"] + "\n";
    } else if (record.kind() == "refusal" || record.kind() == "ignored_option" ||
               record.kind() == "warning") {
      text += record["why"] + "\n";
    }
  }
  text += "\nInterfaces, best first\n";
  text += table_of(report, "interface",
                   {{"use", "use"}, {"interface", "interface"}, {"address", "address"}, {"why", "why"}});
  text += "\nWays to peers: shared memory on this node, packet or udp to others, verbs beside them\n";
  text += table_of(report, "link", {{"use", "use"}, {"way", "link"}, {"why", "why"}});
  text += "\nThresholds\n";
  text += table_of(report, "threshold",
                   {{"threshold", "threshold"}, {">bytes", "bytes"}, {"meaning", "meaning"}});
  text += "\nOptions\n";
  text += table_of(report, "option",
                   {{"option", "option"},
                    {">value", "value"},
                    {"unit", "unit"},
                    {"from", "from"},
                    {"allowed", "allowed"}});
  return text;
}

}  // namespace cluster::info
