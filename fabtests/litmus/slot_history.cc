#include "slot_history.h"

#include <utility>

namespace conformance {
namespace {

using cluster::sim::Linearizability;
using cluster::sim::WordOperation;

/// True if `second`, of the same side, takes effect after `first`, which was posted before it.
bool in_order(const Record& first, const Record& second, bool ordered) {
  if (first.by_processor || second.by_processor) return false;
  const bool atomics = first.word < kAtomicWords && second.word < kAtomicWords;
  return ordered || second.fenced || atomics;
}

WordOperation operation_of(const Record& record, std::size_t side) {
  WordOperation operation;
  operation.kind = record.kind;
  operation.word = record.word;
  operation.origin = side;
  operation.operand = record.operand;
  operation.comparand = record.comparand;
  if (record.fetches) operation.fetched = record.fetched;
  operation.began = record.began;
  operation.ended = record.ended;
  return operation;
}

/// Appends what one side did in a round.
void append(std::vector<WordOperation>& history, std::size_t round, std::size_t side,
            const std::vector<Record>& records, bool ordered) {
  std::vector<std::pair<std::uint32_t, const Record*>> before;
  for (const Record& record : records) {
    if (record.round != round) continue;
    WordOperation operation = operation_of(record, side);
    operation.number = history.size() + 1;
    for (const auto& [index, earlier] : before) {
      if (in_order(*earlier, record, ordered)) operation.after.push_back(index);
    }
    before.emplace_back(static_cast<std::uint32_t>(history.size()), &record);
    history.push_back(std::move(operation));
  }
}

}  // namespace

std::optional<std::string> why_unexplained(std::size_t round, const std::vector<std::vector<Record>>& all,
                                           const SlotValues& last, bool ordered) {
  std::vector<WordOperation> history;
  for (std::size_t side = 0; side < all.size(); ++side) append(history, round, side, all[side], ordered);
  const unsigned bits = bits_of(round);
  const Linearizability judge({{bits}, {bits}, {64}, {64}});
  const Linearizability::Verdict verdict = judge.judge(history, last);
  if (verdict == Linearizability::Verdict::undecided) return std::nullopt;
  if (verdict == Linearizability::Verdict::explained) return std::string();
  return "no order explains\n" + judge.text(history, last);
}

}  // namespace conformance
