// The history of one word that operations read, write, swap, and compare and swap. Every operation that
// writes stores its own number, so a value says which operation wrote it. The value 0 was there before all
// operations.
//
//   one successor   at most one of the operations that fetched a value replaced it
//   nothing stale   an operation does not fetch a value that was certainly replaced before it was accepted
//   nothing lost    every value except the last was replaced: by an operation that fetched it, or by one that
//                   does not say what it replaced
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/digit_history.h"

namespace cluster::sim {

class RegisterHistory {
 public:
  enum class Effect : std::uint8_t { reads, writes, writes_if_equal };

  /// Adds an operation, and returns its index. `comparand` has a meaning for writes_if_equal only.
  std::size_t add(std::uint64_t number, std::uint64_t source, Effect effect, std::uint64_t comparand);
  AtomicRecord& record(std::size_t index) { return entries_[index].record; }
  const AtomicRecord& record(std::size_t index) const { return entries_[index].record; }
  /// Judges the value that an operation has fetched. The operation's record must be complete. Returns what
  /// is wrong, or an empty text.
  std::string fetched(std::size_t index, std::uint64_t value);
  /// Judges the value of the word. No operation may be under way any more.
  std::string check_final(std::uint64_t value) const;

 private:
  struct Entry {
    AtomicRecord record;
    Effect effect = Effect::reads;
    std::uint64_t comparand = 0;
  };

  static bool has_replaced(const Entry& entry);
  static bool has_certainly_written(const Entry& entry);
  const Entry* writer_of(std::uint64_t value) const;
  const Entry* replacer_of(std::uint64_t value) const;
  std::string check_stale(const AtomicRecord& reader, std::uint64_t value) const;

  std::vector<Entry> entries_;
};

}  // namespace cluster::sim
