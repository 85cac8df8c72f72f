// The history of one word that operations change by sum, exclusive or, or, and. Every operation owns a digit
// of the word and changes nothing else of it, so any value of the word names the set of operations that had
// been executed: two bits a digit for sums (a sum that is executed twice shows), one bit for the others.
//
// Operations on a word are linearizable and are executed once. Seen from outside that means:
//
//   chain       of the sets that two operations fetched, each with the operation itself added, one contains
//               the other
//   real time   what had ended before an operation was accepted is in the set that it fetched
//   source      so is what the same process had ordered before it
//   final       the last value holds every set that was ever fetched and every operation that succeeded
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cluster::sim {

/// What a history knows about an operation; times are numbers that grow from event to event.
struct AtomicRecord {
  std::uint64_t number = 0;       ///< of the operation in its run
  std::uint64_t source = 0;       ///< names the process that ordered it
  std::uint64_t accepted_at = 0;  ///< 0: the engine has not accepted it
  std::uint64_t ended_at = 0;     ///< 0: no completion yet
  bool succeeded = false;
  bool must_execute = false;                  ///< known at the end
  std::optional<std::uint64_t> fetched = {};  ///< the value of the word before it
};

enum class DigitKind : std::uint8_t { sum, bxor, bor, band };

class DigitHistory {
 public:
  static constexpr std::size_t kNoSlot = ~std::size_t{0};

  DigitHistory(DigitKind kind, unsigned bits);

  std::uint64_t initial() const { return kind_ == DigitKind::band ? mask_ : 0; }
  bool full() const { return records_.size() >= bits_ / digit_bits(); }
  /// A digit for a new operation.
  std::size_t add(std::uint64_t number, std::uint64_t source);
  std::uint64_t operand(std::size_t slot) const;
  AtomicRecord& record(std::size_t slot) { return records_[slot]; }
  const AtomicRecord& record(std::size_t slot) const { return records_[slot]; }

  /// The operation of `slot`, whose record has been completed, has fetched a value. Returns what is wrong
  /// with it, or nothing.
  std::string fetched(std::size_t slot, std::uint64_t value);
  /// An operation that only reads has done so.
  std::string read(const AtomicRecord& reader);
  /// Judges the value of the word when no operation is under way any more.
  std::string check_final(std::uint64_t value) const;

 private:
  /// A value that was fetched: which operations had been executed, and which one fetched it.
  struct Observation {
    AtomicRecord record;
    std::uint64_t before = 0;  ///< set of slots
    std::uint64_t after = 0;   ///< with the slot of the operation itself, if it has one
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
