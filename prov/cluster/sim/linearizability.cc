#include "sim/linearizability.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <unordered_set>

namespace cluster::sim {
namespace {

using WordKind = WordOperation::Kind;
using IndexSet = std::uint64_t;  ///< a set of indices, one bit for each

/// The search gives up after so many states. Histories that are drawn sensibly need some hundred states.
constexpr std::size_t kStatesMax = 1'000'000;

constexpr std::array<const char*, 15> kKindNames{
    "read",    "write",   "sum",     "bxor",   "bor",     "band",   "least",      "greatest",
    "swap ==", "swap !=", "swap <=", "swap <", "swap >=", "swap >", "swap masked"};

struct SearchState {
  IndexSet done = 0;
  std::array<std::uint64_t, Linearizability::kWordsMax> values{};
  bool operator==(const SearchState&) const = default;
};

struct SearchStateHash {
  std::size_t operator()(const SearchState& state) const {
    std::uint64_t hash = state.done;
    for (const std::uint64_t value : state.values) hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
    return static_cast<std::size_t>(hash ^ hash >> 32);
  }
};

class OrderSearch {
 public:
  OrderSearch(std::span<const WordOperation> history, std::span<const std::uint64_t> final,
              std::span<const Linearizability::Word> words)
      : history_(history), final_(final), words_(words), before_(history.size()) {
    for (std::size_t i = 0; i < history.size(); ++i) {
      if (history[i].certain) certain_ |= bit(i);
      for (std::size_t j = 0; j < history.size(); ++j) {
        if (history[j].certain && history[j].ended < history[i].began) before_[i] |= bit(j);
      }
      for (const std::uint32_t j : history[i].after) {
        if (history[j].certain) before_[i] |= bit(j);
      }
    }
  }

  Linearizability::Verdict run(SearchState state) {
    const bool found = explain(state);
    if (found) return Linearizability::Verdict::explained;
    return seen_.size() >= kStatesMax ? Linearizability::Verdict::undecided
                                      : Linearizability::Verdict::impossible;
  }

 private:
  static IndexSet bit(std::size_t index) { return IndexSet{1} << index; }

  bool may_come_next(std::size_t i, const SearchState& state) const {
    if ((state.done & bit(i)) != 0 || (before_[i] & ~state.done) != 0) return false;
    const WordOperation& operation = history_[i];
    return !operation.fetched || *operation.fetched == state.values[operation.word];
  }

  bool is_over(const SearchState& state) const {
    return (certain_ & ~state.done) == 0 && std::equal(final_.begin(), final_.end(), state.values.begin());
  }

  /// Executes all reads that are possible now. This does not affect any other operation.
  void take_reads(SearchState& state) const {
    for (bool more = true; more;) {
      more = false;
      for (std::size_t i = 0; i < history_.size(); ++i) {
        if (history_[i].kind != WordKind::read || !may_come_next(i, state)) continue;
        state.done |= bit(i);
        more = true;
      }
    }
  }

  bool explain(SearchState state) {
    take_reads(state);
    if (is_over(state)) return true;
    if (seen_.size() >= kStatesMax || !seen_.insert(state).second) return false;
    for (std::size_t i = 0; i < history_.size(); ++i) {
      if (!may_come_next(i, state)) continue;
      SearchState next = state;
      next.done |= bit(i);
      std::uint64_t& value = next.values[history_[i].word];
      value = applied(history_[i], value, words_[history_[i].word].bits);
      if (explain(next)) return true;
    }
    return false;
  }

  std::span<const WordOperation> history_;
  std::span<const std::uint64_t> final_;
  std::span<const Linearizability::Word> words_;
  std::vector<IndexSet> before_;  ///< for each operation: what takes effect before it
  IndexSet certain_ = 0;
  std::unordered_set<SearchState, SearchStateHash> seen_;
};

}  // namespace

std::uint64_t applied(const WordOperation& operation, std::uint64_t value, unsigned bits) {
  const std::uint64_t operand = operation.operand;
  const std::uint64_t comparand = operation.comparand;
  const auto replaced_if = [&](bool condition) { return condition ? operand : value; };
  const auto result = [&]() -> std::uint64_t {
    switch (operation.kind) {
      case WordKind::read: return value;
      case WordKind::write: return operand;
      case WordKind::sum: return value + operand;
      case WordKind::bxor: return value ^ operand;
      case WordKind::bor: return value | operand;
      case WordKind::band: return value & operand;
      case WordKind::least: return std::min(value, operand);
      case WordKind::greatest: return std::max(value, operand);
      case WordKind::swap_if_equal: return replaced_if(comparand == value);
      case WordKind::swap_if_not_equal: return replaced_if(comparand != value);
      case WordKind::swap_if_less_or_equal: return replaced_if(comparand <= value);
      case WordKind::swap_if_less: return replaced_if(comparand < value);
      case WordKind::swap_if_greater_or_equal: return replaced_if(comparand >= value);
      case WordKind::swap_if_greater: return replaced_if(comparand > value);
      case WordKind::swap_masked: return (operand & comparand) | (value & ~comparand);
    }
    return value;
  };
  return bits >= 64 ? result() : result() & ((std::uint64_t{1} << bits) - 1);
}

Linearizability::Linearizability(std::vector<Word> words) : words_(std::move(words)) {
  if (words_.size() > kWordsMax) throw std::length_error("more words than a history may have");
}

Linearizability::Verdict Linearizability::judge(std::span<const WordOperation> history,
                                                std::span<const std::uint64_t> final) const {
  if (history.size() > kOperationsMax) throw std::length_error("more operations than a history may have");
  SearchState state;
  for (std::size_t i = 0; i < words_.size(); ++i) state.values[i] = words_[i].initial;
  return OrderSearch(history, final, words_).run(state);
}

std::string Linearizability::text(std::span<const WordOperation> history,
                                  std::span<const std::uint64_t> final) const {
  std::string lines;
  for (std::size_t i = 0; i < history.size(); ++i) {
    const WordOperation& operation = history[i];
    lines += std::to_string(operation.number) + " by " + std::to_string(operation.origin) + " on word " +
             std::to_string(operation.word) + ": " + kKindNames[static_cast<std::size_t>(operation.kind)] +
             " " + std::to_string(operation.operand);
    if (operation.kind >= WordKind::swap_if_equal) lines += " (" + std::to_string(operation.comparand) + ")";
    if (operation.fetched) lines += " fetched " + std::to_string(*operation.fetched);
    lines += ", " + std::to_string(operation.began) + " to " +
             (operation.ended == WordOperation::kNever ? "?" : std::to_string(operation.ended)) +
             (operation.certain ? "" : ", or never") + "\n";
  }
  for (std::size_t word = 0; word < words_.size(); ++word) {
    lines += "word " + std::to_string(word) + " began with " + std::to_string(words_[word].initial);
    lines += word < final.size() ? " and ended with " + std::to_string(final[word]) + "\n" : "\n";
  }
  return lines;
}

}  // namespace cluster::sim
