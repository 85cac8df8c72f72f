// A report about this node or a running endpoint (cluster-info): records of named facts. A program that
// prints a report need not know every fact, so a later version can add some.
//
// Between processes a report travels as text, one line for each fact:
//
//   [peer                       a record of this kind begins
//   =peer 10.0.0.2:9228         a text: printable ASCII
//   #window_frames 32           a number: digits, perhaps behind a minus
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

  std::string name;  ///< lower case, digits, underscores; the name of a number ends with its unit
  Kind kind = Kind::text;
  std::string value;
};

class Record {
 public:
  explicit Record(std::string_view kind) : kind_(kind) {}

  /// Adds a text. Replaces unprintable characters by question marks, and cuts a value that is too long.
  Record& text(std::string_view name, std::string_view value);
  Record& number(std::string_view name, std::uint64_t value);
  Record& flag(std::string_view name, bool value);

  const std::string& kind() const { return kind_; }
  const std::vector<Fact>& facts() const { return facts_; }
  /// Returns the value of the fact with that name; empty if there is none.
  const std::string& operator[](std::string_view name) const;

 private:
  friend std::optional<std::vector<Record>> read_report(std::string_view text);

  std::string kind_;
  std::vector<Fact> facts_;
};

using Report = std::vector<Record>;

std::string write_report(const Report& report);
/// Reads what write_report() has written. Returns nothing if the text is no report.
std::optional<Report> read_report(std::string_view text);

inline constexpr std::size_t kReportBytesMax = 64u << 20;
inline constexpr std::size_t kFactNameMax = 48;
inline constexpr std::size_t kFactValueMax = 1000;

}  // namespace cluster
