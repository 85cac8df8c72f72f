// Aligned columns, no line longer than 100 characters if that can be had: the last column goes on below
// itself.
#pragma once

#include <string>
#include <vector>

namespace cluster::info {

class Table {
 public:
  /// A title that begins with '>' is that of a column of numbers, aligned to the right.
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
