// A text table with aligned columns. It wraps the last column, so that lines have at most 100 characters
// where possible.
#pragma once

#include <string>
#include <vector>

namespace cluster::info {

class Table {
 public:
  /// A title that begins with '>' aligns its column to the right.
  explicit Table(std::vector<std::string> titles);

  void add(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }
  std::string text() const;

 private:
  std::vector<std::string> titles_;
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace cluster::info
