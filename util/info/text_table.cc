#include "text_table.h"

#include <algorithm>

namespace cluster::info {
namespace {

constexpr std::size_t kLineMax = 100;
constexpr std::size_t kIndent = 2;
constexpr std::size_t kGap = 2;
constexpr std::size_t kColumnMax = 60;  // one long cell does not make every line long
constexpr std::size_t kLastMin = 30;    // below this width the line exceeds kLineMax instead

/// `text` in lines of at most `width`, broken at blanks.
std::vector<std::string> wrapped(std::string text, std::size_t width) {
  std::vector<std::string> lines;
  while (text.size() > width) {
    std::size_t blank = text.rfind(' ', width);
    if (blank == std::string::npos || blank == 0) blank = std::min(text.find(' '), text.size());
    lines.push_back(text.substr(0, blank));
    text.erase(0, std::min(blank + 1, text.size()));
  }
  lines.push_back(std::move(text));
  return lines;
}

std::string padded(const std::string& cell, std::size_t width, bool right) {
  const std::string blanks(width - std::min(width, cell.size()), ' ');
  return right ? blanks + cell : cell + blanks;
}

}  // namespace

Table::Table(std::vector<std::string> titles) : titles_(std::move(titles)) {
  for (std::string& title : titles_) {
    right_.push_back(title.starts_with('>'));
    if (right_.back()) title.erase(0, 1);
  }
}

void Table::add(std::vector<std::string> cells) {
  cells.resize(titles_.size());
  for (std::string& cell : cells) {
    if (cell.empty()) cell = "-";
  }
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<std::size_t> widths;
  for (std::size_t column = 0; column < titles_.size(); ++column) {
    widths.push_back(titles_[column].size());
    for (const auto& row : rows_)
      widths.back() = std::max(widths.back(), std::min(row[column].size(), kColumnMax));
  }
  std::string text;
  const auto add_row = [&](const std::vector<std::string>& row) {
    std::string line(kIndent, ' ');
    for (std::size_t column = 0; column + 1 < row.size(); ++column) {
      line += padded(row[column], widths[column], right_[column]) + std::string(kGap, ' ');
    }
    const std::size_t begin = line.size();
    const std::size_t width = std::max(kLastMin, kLineMax - std::min(kLineMax, begin));
    for (const std::string& part : wrapped(row.back(), width)) {
      line += right_.back() ? padded(part, widths.back(), true) : part;
      text += line + "\n";
      line.assign(begin, ' ');
    }
  };
  add_row(titles_);
  for (const auto& row : rows_) add_row(row);
  return text;
}

}  // namespace cluster::info
