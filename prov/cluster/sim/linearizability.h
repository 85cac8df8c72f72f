// Judges histories of operations on a few words of memory. Is there an order in which every operation takes
// effect at one moment between its beginning and its end, and which explains every fetched value and the
// final values? Such an order shows that no operation was lost, executed twice, torn, executed after its
// completion, or moved across another one although an order was asked for. The simulator judges atomic
// operations in this way. fabtests/litmus does the same with operations over real links and in MPI's
// windows.
//
// The search is that of Wing and Gong (J. Parallel Distrib. Comput. 17, 1993). As in Lowe's version
// (Concurrency Computat. Pract. Exper. 29, 2017), it remembers the states that it has seen. A state consists
// of the set of executed operations and the values of the words. A read that finds the value which it
// fetched is executed at once.
//
// Some promises are stronger than the order in real time. The history expresses them by `after`, or by an
// earlier `ended`. For example, an operation has ended when another process learns of it by a message, a
// fence or a counter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace cluster::sim {

struct WordOperation {
  /// How an operation changes a value. A swap with a comparison compares the comparand with the value, as in
  /// fi_atomic(3): swap_if_less replaces the value if the comparand is less.
  enum class Kind : std::uint8_t {
    read,
    write,
    sum,
    bxor,
    bor,
    band,
    least,
    greatest,
    swap_if_equal,
    swap_if_not_equal,
    swap_if_less_or_equal,
    swap_if_less,
    swap_if_greater_or_equal,
    swap_if_greater,
    swap_masked,
  };
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  Kind kind = Kind::read;
  std::uint32_t word = 0;
  std::uint64_t number = 0;  ///< identifies the operation in a report
  std::uint64_t origin = 0;
  std::uint64_t operand = 0;
  std::uint64_t comparand = 0;
  std::optional<std::uint64_t> fetched = {};
  std::uint64_t began = 0;
  std::uint64_t ended = kNever;  ///< by then the operation has taken effect; kNever: unknown
  bool certain = true;           ///< false: it may have had no effect (it failed, or its origin died)
  std::vector<std::uint32_t> after = {};  ///< indices of operations that take effect before this one
};

/// Returns what the operation makes of a value of `bits` bits.
std::uint64_t applied(const WordOperation& operation, std::uint64_t value, unsigned bits);

class Linearizability {
 public:
  static constexpr std::size_t kOperationsMax = 64;
  static constexpr std::size_t kWordsMax = 4;

  struct Word {
    unsigned bits = 64;
    std::uint64_t initial = 0;  ///< value before all operations
  };

  explicit Linearizability(std::vector<Word> words);

  enum class Verdict : std::uint8_t { explained, impossible, undecided };
  /// `final`: the values of the words after all operations; empty if they are not known.
  Verdict judge(std::span<const WordOperation> history, std::span<const std::uint64_t> final) const;
  /// Returns the history for a report, with a line for each operation.
  std::string text(std::span<const WordOperation> history, std::span<const std::uint64_t> final) const;

 private:
  std::vector<Word> words_;
};

}  // namespace cluster::sim
