// The history of one word that operations of every kind change: they combine, replace, compare, or only
// read. The history is judged as a whole when no operation is under way any more (sim/linearizability.h).
//
// The order of operations must agree with real time, and with the order of each process: atomic operations
// of one process on one word are executed in the order in which they were accepted.
#pragma once

#include <string>
#include <vector>

#include "sim/digit_history.h"
#include "sim/linearizability.h"

namespace cluster::sim {

class WordHistory {
 public:
  /// So few operations that the search decides every history.
  static constexpr std::size_t kOperationsMax = 16;

  explicit WordHistory(unsigned bits) : bits_(bits) {}

  bool full() const { return entries_.size() >= kOperationsMax; }
  std::size_t size() const { return entries_.size(); }
  std::size_t add(std::uint64_t number, std::uint64_t source, WordOperation::Kind kind, std::uint64_t operand,
                  std::uint64_t comparand);
  AtomicRecord& record(std::size_t index) { return entries_[index].record; }
  /// Judges the fetched values, and the value of the word. No operation may be under way any more.
  std::string check_final(std::uint64_t value) const;

 private:
  struct Entry {
    AtomicRecord record;
    WordOperation::Kind kind;
    std::uint64_t operand;
    std::uint64_t comparand;
  };

  std::vector<WordOperation> operations() const;

  unsigned bits_;
  std::vector<Entry> entries_;
};

}  // namespace cluster::sim
