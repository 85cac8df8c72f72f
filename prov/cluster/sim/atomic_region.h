// Memory that one incarnation of a process registers for atomic operations of its peers: rows of words, each
// row with one type and one family of operations, and a history of the operations on every word. The
// memory is the region's own, with guards around it; only the library writes it.
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

/// What an operation does to each word of its range, and where its record is kept.
struct AtomicAccess {
  std::size_t row = 0;
  std::size_t first = 0;  ///< word of the row
  std::size_t count = 0;
  wire::AtomicCode code = {};
  std::vector<std::size_t> records = {};       ///< one for each word; reads of digits have none
  std::vector<std::uint64_t> operands = {};    ///< one for each word
  std::vector<std::uint64_t> comparands = {};  ///< likewise, if the operation compares
};

class AtomicRegion {
 public:
  struct Shape {
    HostNumber host = 0;
    std::uint32_t incarnation = 0;
    std::uint64_t key = 0;
    std::uint64_t start = 0;  ///< remote address of its first byte
  };
  static constexpr std::size_t kRowWords = 48;  ///< of eight bytes: three parts on the wire

  explicit AtomicRegion(const Shape& shape);

  const Shape& shape() const { return shape_; }
  std::size_t length() const { return memory_.size() - 2 * kMarginBytes; }
  protocol::MemoryRegion region();
  std::size_t rows() const { return rows_.size(); }
  bool has_digits(std::size_t row) const { return rows_[row].digit_kind.has_value(); }
  /// The rows from this one on take operations of every kind.
  std::size_t mixed_from() const;
  bool is_mixed(std::size_t row) const { return !rows_[row].mixed.empty(); }
  wire::AtomicType type_of(std::size_t row) const { return rows_[row].type; }
  /// Where the word lies in the region, in bytes.
  std::size_t offset_of(std::size_t row, std::size_t word) const;
  /// What the word holds now.
  std::uint64_t value(std::size_t row, std::size_t word) const;
  /// The operation that changes the words of this row, if they are made of digits.
  wire::AtomicOp digit_op(std::size_t row) const;
  /// True if every word of [first, first + count) can record another operation.
  bool has_space(std::size_t row, std::size_t first, std::size_t count) const;

  /// Gives the operation its records and, if its words are made of digits, its operands.
  void add(AtomicAccess& access, std::uint64_t number, std::uint64_t source);
  void accepted(const AtomicAccess& access, std::uint64_t time);
  /// The operation has completed. `results`: what it fetched, an element for each word; empty if it fetches
  /// nothing. Returns what is wrong with that, or nothing. `reader` describes an operation without records.
  std::string ended(const AtomicAccess& access, AtomicRecord reader, ConstBytes results);
  /// Notes that this operation must have been executed.
  void expect(const AtomicAccess& access);
  /// Judges the memory when no operation is under way any more.
  std::string check_final() const;
  /// Words on which several operations met.
  std::size_t histories() const;

 private:
  struct Row {
    wire::AtomicType type;
    std::optional<DigitKind> digit_kind = {};  ///< none: registers, or mixed
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
