// Judges histories of operations on a few words of memory: is there one order, in which every operation takes
// effect at one moment between its beginning and its end, that explains every value that was fetched and what
// is there at the end? Such an order shows that nothing was lost, done twice, torn, done after its completion
// said so, or moved across an order that was asked for. Used by the simulator, by fabtests/litmus over real
// links, and for MPI's windows.
//
// The search is that of Wing and Gong (J. Parallel Distrib. Comput. 17, 1993), with Lowe's memory of states
// that were seen before (Concurrency Computat. Pract. Exper. 29, 2017): a state is the set of operations done
// and the values of the words. Operations that only read, and find what they must, are never postponed.
//
// A promise that is more than real time is said by `after`, or by an earlier `ended`: a message, a fence or a
// counter by which another process learns of an operation ends it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace cluster::sim {

struct WordOperation {
  /// How an operation changes a value; the comparisons replace it if the comparand compares so with it, as in
  /// fi_atomic(3).
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
  std::uint64_t number = 0;  ///< names it in a report
  std::uint64_t origin = 0;
  std::uint64_t operand = 0;
  std::uint64_t comparand = 0;
  std::optional<std::uint64_t> fetched = {};
  std::uint64_t began = 0;
  std::uint64_t ended = kNever;  ///< by then it has taken effect; kNever: its origin does not know when
  bool certain = true;           ///< false: it may take effect or not (it failed, its origin died)
  std::vector<std::uint32_t> after = {};  ///< indices of operations that take effect before this one
};

/// What an operation makes of a value of `bits` bits.
std::uint64_t applied(const WordOperation& operation, std::uint64_t value, unsigned bits);

class Linearizability {
 public:
  static constexpr std::size_t kOperationsMax = 64;
  static constexpr std::size_t kWordsMax = 4;

  struct Word {
    unsigned bits = 64;
    std::uint64_t initial = 0;  ///< what it holds before all operations
  };

  explicit Linearizability(std::vector<Word> words);

  enum class Verdict : std::uint8_t { explained, impossible, undecided };
  /// `final`: what the words hold when all operations are over; empty: not known.
  Verdict judge(std::span<const WordOperation> history, std::span<const std::uint64_t> final) const;
  /// The history, a line each, for a report.
  std::string text(std::span<const WordOperation> history, std::span<const std::uint64_t> final) const;

 private:
  std::vector<Word> words_;
};

}  // namespace cluster::sim
