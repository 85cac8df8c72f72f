// A report is about this node or a running endpoint. cluster-info prints reports. A report consists of
// records, and a record consists of named facts. A program can print facts whose meaning it does not know.
// Therefore a later version of the provider can add facts.
//
// A process sends a report to another as text, with one line for each fact:
//
//   [peer                       a record of this kind begins
//   =peer 10.0.0.2:9228         a text: printable ASCII
//   #window_frames 32           a number: digits, perhaps after a minus sign
//   ?confirmed yes              yes or no
//
// read_report() trusts nothing: it refuses text that breaks these rules or exceeds the limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cluster {

struct Fact {
  enum class Kind : char { text = '=', number = '#', flag = '?' };

  std::string name;  ///< lower case, digits, underscores; if a number has a unit, its name ends with the unit
  Kind kind = Kind::text;
  std::string value;
};

class Record {
 public:
  explicit Record(std::string_view kind) : kind_(kind) {}

  /// Adds a fact with a text as its value. Replaces unprintable characters by question marks, and truncates a
  /// value that is too long.
  Record& text(std::string_view name, std::string_view value);
  Record& number(std::string_view name, std::uint64_t value);
  Record& flag(std::string_view name, bool value);

  const std::string& kind() const { return kind_; }
  const std::vector<Fact>& facts() const { return facts_; }
  /// Returns the value of the fact with this name, or an empty text if there is no such fact.
  const std::string& operator[](std::string_view name) const;

 private:
  friend std::optional<std::vector<Record>> read_report(std::string_view text);

  std::string kind_;
  std::vector<Fact> facts_;
};

using Report = std::vector<Record>;

std::string write_report(const Report& report);
/// Parses a text in the format of write_report(). Returns nullopt if the text is not a valid report.
std::optional<Report> read_report(std::string_view text);

inline constexpr std::size_t kReportBytesMax = 64u << 20;
inline constexpr std::size_t kFactNameMax = 48;
inline constexpr std::size_t kFactValueMax = 1000;

}  // namespace cluster
