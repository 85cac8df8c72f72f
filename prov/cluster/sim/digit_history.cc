#include "sim/digit_history.h"

namespace cluster::sim {
namespace {

std::uint64_t low_bits(unsigned count) {
  return count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}

bool contains(std::uint64_t whole, std::uint64_t part) { return (part & ~whole) == 0; }

std::string text(const AtomicRecord& record) { return "atomic operation " + std::to_string(record.number); }

}  // namespace

DigitHistory::DigitHistory(DigitKind kind, unsigned bits) : kind_(kind), bits_(bits), mask_(low_bits(bits)) {}

std::size_t DigitHistory::add(std::uint64_t number, std::uint64_t source) {
  records_.push_back({.number = number, .source = source});
  return records_.size() - 1;
}

std::uint64_t DigitHistory::operand(std::size_t slot) const {
  const std::uint64_t digit = std::uint64_t{1} << slot * digit_bits();
  return kind_ == DigitKind::band ? mask_ & ~digit : digit;
}

/// Finds the operations that a value shows as executed. Returns what is wrong, or an empty text.
std::string DigitHistory::executed(std::uint64_t value, std::uint64_t& slots) const {
  slots = 0;
  if ((value & ~mask_) != 0) return "a value has more bits than its type";
  if (kind_ == DigitKind::band) value = ~value & mask_;
  const std::uint64_t digit_mask = low_bits(digit_bits());
  for (std::size_t slot = 0; slot < bits_ / digit_bits(); ++slot) {
    const std::uint64_t digit = value >> slot * digit_bits() & digit_mask;
    if (digit == 0) continue;
    if (slot >= records_.size() || records_[slot].accepted_at == 0) {
      return "a value shows an operation that was never accepted (digit " + std::to_string(slot) + ")";
    }
    if (digit > 1) return text(records_[slot]) + " was executed twice";
    slots |= std::uint64_t{1} << slot;
  }
  return {};
}

std::uint64_t DigitHistory::ended_before(std::uint64_t time) const {
  std::uint64_t slots = 0;
  for (std::size_t slot = 0; slot < records_.size(); ++slot) {
    const AtomicRecord& record = records_[slot];
    if (record.succeeded && record.ended_at != 0 && record.ended_at < time) slots |= std::uint64_t{1} << slot;
  }
  return slots;
}

std::string DigitHistory::observe(const Observation& seen) {
  if (!contains(seen.before, ended_before(seen.record.accepted_at))) {
    return text(seen.record) + " fetched a value without an operation that had ended before it began";
  }
  for (const Observation& other : observations_) {
    const bool later = contains(seen.before, other.after);
    const bool earlier = contains(other.before, seen.after);
    if (!later && !earlier) {
      return text(seen.record) + " and " + std::to_string(other.record.number) +
             " fetched values that no order of operations explains";
    }
    if (other.record.ended_at < seen.record.accepted_at && !later) {
      return text(seen.record) + " fetched an older value than " + std::to_string(other.record.number) +
             ", which had ended before";
    }
  }
  observations_.push_back(seen);
  return {};
}

std::string DigitHistory::fetched(std::size_t slot, std::uint64_t value) {
  const std::uint64_t own = std::uint64_t{1} << slot;
  Observation seen{records_[slot], 0, 0};
  if (std::string wrong = executed(value, seen.before); !wrong.empty()) return wrong;
  if ((seen.before & own) != 0) return text(records_[slot]) + " fetched its own result";
  seen.after = seen.before | own;
  return observe(seen);
}

std::string DigitHistory::read(const AtomicRecord& reader) {
  Observation seen{reader, 0, 0};
  if (std::string wrong = executed(*reader.fetched, seen.before); !wrong.empty()) return wrong;
  seen.after = seen.before;
  return observe(seen);
}

std::string DigitHistory::check_final(std::uint64_t value) const {
  std::uint64_t slots = 0;
  if (std::string wrong = executed(value, slots); !wrong.empty()) return wrong;
  for (std::size_t slot = 0; slot < records_.size(); ++slot) {
    const bool there = (slots >> slot & 1) != 0;
    if (!there && (records_[slot].succeeded || records_[slot].must_execute)) {
      return text(records_[slot]) + " left no trace in the final value";
    }
  }
  for (const Observation& seen : observations_) {
    if (!contains(slots, seen.after))
      return text(seen.record) + " fetched what the final value does not show";
    for (std::size_t slot = 0; slot < records_.size(); ++slot) {
      const AtomicRecord& other = records_[slot];
      const bool ordered_before = other.source == seen.record.source && other.accepted_at != 0 &&
                                  other.accepted_at < seen.record.accepted_at && other.succeeded;
      if (ordered_before && (seen.before >> slot & 1) == 0) {
        return text(seen.record) + " overtook operation " + std::to_string(other.number) +
               " of the same process";
      }
    }
  }
  return {};
}

}  // namespace cluster::sim
