// Memory that one incarnation of a process registers for atomic operations of its peers. The memory consists
// of rows of words. Each row has one type and one family of operations, and each word has a history of the
// operations on it. The region owns the memory, with guards around it. After the constructor only the
// library writes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "protocol/region_table.h"
#include "sim/digit_history.h"
#include "sim/register_history.h"
#include "sim/sim_network.h"
#include "sim/word_history.h"
#include "wire/atomic.h"

namespace cluster::sim {

/// What an operation does to each word of its range, and where the operation's records are.
struct AtomicAccess {
  std::size_t row = 0;
  std::size_t first = 0;  ///< first word of the range, counted in the row
  std::size_t count = 0;
  wire::AtomicCode code = {};
  std::vector<std::size_t> records = {};       ///< one index for each word; none if digits are read
  std::vector<std::uint64_t> operands = {};    ///< one for each word
  std::vector<std::uint64_t> comparands = {};  ///< one for each word, if the operation compares
};

class AtomicRegion {
 public:
  struct Shape {
    HostNumber host = 0;
    std::uint32_t incarnation = 0;
    std::uint64_t key = 0;
    std::uint64_t start = 0;  ///< remote address of its first byte
  };
  static constexpr std::size_t kRowWords = 48;  ///< a row of 8-byte words is three parts on the wire

  explicit AtomicRegion(const Shape& shape);

  const Shape& shape() const { return shape_; }
  std::size_t length() const { return memory_.size() - 2 * kMarginBytes; }
  protocol::MemoryRegion region();
  std::size_t rows() const { return rows_.size(); }
  bool has_digits(std::size_t row) const { return rows_[row].digit_kind.has_value(); }
  /// Returns the first row that takes operations of every kind. All rows behind it do so, too.
  std::size_t mixed_from() const;
  bool is_mixed(std::size_t row) const { return !rows_[row].mixed.empty(); }
  wire::AtomicType type_of(std::size_t row) const { return rows_[row].type; }
  /// Returns the offset of the word in the region, in bytes.
  std::size_t offset_of(std::size_t row, std::size_t word) const;
  /// Returns the present value of the word.
  std::uint64_t value(std::size_t row, std::size_t word) const;
  /// Returns the operation that changes the words of this row. These words must be made of digits.
  wire::AtomicOp digit_op(std::size_t row) const;
  /// Returns true if every word of [first, first + count) can record another operation.
  bool has_space(std::size_t row, std::size_t first, std::size_t count) const;

  /// Gives the operation its records and, unless it reads, its operands.
  void add(AtomicAccess& access, std::uint64_t number, std::uint64_t source);
  void accepted(const AtomicAccess& access, std::uint64_t time);
  /// Notes that the operation has succeeded, and judges its results. `results`: the fetched values, one for
  /// each word; empty if the operation fetches nothing. `reader`: number, process and times of the
  /// operation. Returns what is wrong, or an empty text.
  std::string ended(const AtomicAccess& access, AtomicRecord reader, ConstBytes results);
  /// Notes that this operation must have been executed by the end of the run.
  void expect(const AtomicAccess& access);
  /// Judges the memory. No operation may be under way any more. Returns what is wrong, or an empty text.
  std::string check_final() const;
  /// Returns the number of words that take operations of every kind, and have taken several.
  std::size_t histories() const;

 private:
  struct Row {
    wire::AtomicType type;
    std::optional<DigitKind> digit_kind = {};  ///< none if the row has registers or mixed words
    bool takes_all = false;
    std::size_t offset = 0;
    std::vector<DigitHistory> digits = {};
    std::vector<RegisterHistory> registers = {};
    std::vector<WordHistory> mixed = {};
  };

  static constexpr std::size_t kMarginBytes = 64;
  AtomicRecord& record(const AtomicAccess& access, std::size_t index);
  std::string ended(Row& row, std::size_t word, const AtomicAccess& access, std::size_t index,
                    const AtomicRecord& own);

  Shape shape_;
  std::vector<Row> rows_;
  std::vector<std::byte> memory_;
};

}  // namespace cluster::sim
