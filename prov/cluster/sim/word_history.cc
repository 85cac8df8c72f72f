#include "sim/word_history.h"

#include <array>

namespace cluster::sim {

std::size_t WordHistory::add(std::uint64_t number, std::uint64_t source, WordOperation::Kind kind,
                             std::uint64_t operand, std::uint64_t comparand) {
  const std::uint64_t mask = bits_ >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits_) - 1;
  entries_.push_back({{.number = number, .source = source}, kind, operand & mask, comparand & mask});
  return entries_.size() - 1;
}

/// Returns the operations that the engine has accepted. An operation is not certain if it was not reported
/// to have succeeded, and need not have been executed.
std::vector<WordOperation> WordHistory::operations() const {
  std::vector<WordOperation> history;
  for (const Entry& entry : entries_) {
    const AtomicRecord& record = entry.record;
    if (record.accepted_at == 0) continue;
    WordOperation operation;
    operation.kind = entry.kind;
    operation.number = record.number;
    operation.origin = record.source;
    operation.operand = entry.operand;
    operation.comparand = entry.comparand;
    operation.fetched = record.fetched;
    operation.began = record.accepted_at;
    if (record.succeeded) operation.ended = record.ended_at;
    operation.certain = record.succeeded || record.must_execute;
    for (std::uint32_t i = 0; i < history.size(); ++i) {
      if (history[i].origin == operation.origin) operation.after.push_back(i);
    }
    history.push_back(operation);
  }
  return history;
}

std::string WordHistory::check_final(std::uint64_t value) const {
  const std::vector<WordOperation> history = operations();
  const std::array final{value};
  const Linearizability judge(std::vector<Linearizability::Word>{{.bits = bits_}});
  switch (judge.judge(history, final)) {
    case Linearizability::Verdict::explained: return {};
    case Linearizability::Verdict::undecided: return "a history with too many orders to be judged";
    case Linearizability::Verdict::impossible: break;
  }
  return "no order explains\n" + judge.text(history, final);
}

}  // namespace cluster::sim
