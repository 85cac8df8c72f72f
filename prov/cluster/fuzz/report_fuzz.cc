// A report of a process that another user runs, as cluster-info and the agent read it. What is accepted is what
// write_report() writes, so it holds printable text and numbers only, and is the same when it is written again.
#include <algorithm>
#include <string>
#include <string_view>

#include "base/report.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cluster;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::optional<Report> report = read_report(text);
  if (!report) return 0;
  if (write_report(*report) != text) __builtin_trap();
  for (const Record& record : *report) {
    for (const Fact& fact : record.facts()) {
      const bool clean =
          std::all_of(fact.value.begin(), fact.value.end(), [](char c) { return c >= ' ' && c <= '~'; });
      if (!clean || fact.value.size() > kFactValueMax || fact.name.size() > kFactNameMax) __builtin_trap();
    }
  }
  return 0;
}
