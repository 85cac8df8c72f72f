// The history of one word that operations change by sum, XOR, OR or AND. Every operation owns a digit of the
// word and changes no other digit. So any value of the word says which operations had been executed. For
// sums a digit has two bits, so that a sum that is executed twice shows. For the other operations it has one
// bit.
//
// Operations on a word are linearizable, and each is executed once. Seen from outside this means:
//
//   chain       of two operations that fetched, one found the other one executed, and all that the other one
//               had found
//   real time   an operation finds executed what had ended before it was accepted
//   source      an operation finds executed what the same process had ordered before it
//   final       the last value contains every operation that was ever found executed, and every one that
//               succeeded
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cluster::sim {

/// What a history knows about an operation. Times are numbers that grow from event to event.
struct AtomicRecord {
  std::uint64_t number = 0;       ///< of the operation in its run
  std::uint64_t source = 0;       ///< the process that ordered it
  std::uint64_t accepted_at = 0;  ///< 0: the engine has not accepted it yet
  std::uint64_t ended_at = 0;     ///< 0: no completion yet
  bool succeeded = false;
  bool must_execute = false;                  ///< set at the end, if it cannot have failed
  std::optional<std::uint64_t> fetched = {};  ///< the value of the word before the operation
};

enum class DigitKind : std::uint8_t { sum, bxor, bor, band };

class DigitHistory {
 public:
  static constexpr std::size_t kNoSlot = ~std::size_t{0};

  DigitHistory(DigitKind kind, unsigned bits);

  std::uint64_t initial() const { return kind_ == DigitKind::band ? mask_ : 0; }
  bool full() const { return records_.size() >= bits_ / digit_bits(); }
  /// Gives a new operation a digit. Returns the slot of the operation.
  std::size_t add(std::uint64_t number, std::uint64_t source);
  std::uint64_t operand(std::size_t slot) const;
  AtomicRecord& record(std::size_t slot) { return records_[slot]; }
  const AtomicRecord& record(std::size_t slot) const { return records_[slot]; }

  /// Judges the value that the operation of `slot` has fetched. The operation's record must be complete.
  /// Returns what is wrong, or an empty text.
  std::string fetched(std::size_t slot, std::uint64_t value);
  /// Judges the value that an operation without a digit has read.
  std::string read(const AtomicRecord& reader);
  /// Judges the value of the word. No operation may be under way any more.
  std::string check_final(std::uint64_t value) const;

 private:
  /// A fetched value: which operations had been executed, and which operation fetched it.
  struct Observation {
    AtomicRecord record;
    std::uint64_t before = 0;  ///< the slots of executed operations
    std::uint64_t after = 0;   ///< the same, and the slot of the operation itself
  };

  unsigned digit_bits() const { return kind_ == DigitKind::sum ? 2 : 1; }
  std::string executed(std::uint64_t value, std::uint64_t& slots) const;
  std::string observe(const Observation& seen);
  std::uint64_t ended_before(std::uint64_t time) const;

  DigitKind kind_;
  unsigned bits_;
  std::uint64_t mask_;
  std::vector<AtomicRecord> records_;
  std::vector<Observation> observations_;
};

}  // namespace cluster::sim
