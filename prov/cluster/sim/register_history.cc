#include "sim/register_history.h"

#include <algorithm>

namespace cluster::sim {
namespace {

std::string text(const AtomicRecord& record) { return "atomic operation " + std::to_string(record.number); }

/// Returns true if `first` precedes `second` in every order: it ended before `second` was accepted, or the
/// same process ordered it first.
bool precedes(const AtomicRecord& first, const AtomicRecord& second) {
  if (first.ended_at != 0 && first.ended_at < second.accepted_at) return true;
  return first.source == second.source && first.accepted_at < second.accepted_at;
}

}  // namespace

std::size_t RegisterHistory::add(std::uint64_t number, std::uint64_t source, Effect effect,
                                 std::uint64_t comparand) {
  entries_.push_back({{.number = number, .source = source}, effect, comparand});
  return entries_.size() - 1;
}

/// Returns true if the operation is known to have replaced the value that it fetched.
bool RegisterHistory::has_replaced(const Entry& entry) {
  if (!entry.record.fetched || entry.effect == Effect::reads) return false;
  return entry.effect == Effect::writes || *entry.record.fetched == entry.comparand;
}

bool RegisterHistory::has_certainly_written(const Entry& entry) {
  return has_replaced(entry) ||
         (entry.effect == Effect::writes && (entry.record.succeeded || entry.record.must_execute));
}

const RegisterHistory::Entry* RegisterHistory::writer_of(std::uint64_t value) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [value](const Entry& entry) {
    const bool may_have_written = !entry.record.fetched || has_replaced(entry);
    return entry.record.number == value && entry.effect != Effect::reads && entry.record.accepted_at != 0 &&
           may_have_written;
  });
  return found == entries_.end() ? nullptr : &*found;
}

const RegisterHistory::Entry* RegisterHistory::replacer_of(std::uint64_t value) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [value](const Entry& entry) {
    return has_replaced(entry) && *entry.record.fetched == value;
  });
  return found == entries_.end() ? nullptr : &*found;
}

/// Returns what is wrong if `reader` sees `value` in the word, or an empty text if some order explains it.
std::string RegisterHistory::check_stale(const AtomicRecord& reader, std::uint64_t value) const {
  const Entry* const writer = writer_of(value);
  if (value != 0 && writer == nullptr) {
    return text(reader) + " saw " + std::to_string(value) + ", which no operation wrote";
  }
  const Entry* const replacer = replacer_of(value);
  if (replacer != nullptr && replacer->record.number != reader.number && precedes(replacer->record, reader)) {
    return text(reader) + " saw " + std::to_string(value) + ", which operation " +
           std::to_string(replacer->record.number) + " had replaced before";
  }
  for (const Entry& entry : entries_) {
    if (!has_certainly_written(entry) || entry.record.number == reader.number || &entry == writer) continue;
    const bool between =
        precedes(entry.record, reader) && (writer == nullptr || precedes(writer->record, entry.record));
    if (between) {
      return text(reader) + " saw " + std::to_string(value) + ", which operation " +
             std::to_string(entry.record.number) + " had overwritten before";
    }
  }
  return {};
}

std::string RegisterHistory::fetched(std::size_t index, std::uint64_t value) {
  Entry& entry = entries_[index];
  if (const Entry* before = has_replaced(entry) ? replacer_of(value) : nullptr;
      before != nullptr && before != &entry) {
    return text(entry.record) + " replaced the value " + std::to_string(value) + " that operation " +
           std::to_string(before->record.number) + " had replaced";
  }
  const Entry* const writer = writer_of(value);
  if (writer == &entry) return text(entry.record) + " fetched its own result";
  return check_stale(entry.record, value);
}

std::string RegisterHistory::check_final(std::uint64_t value) const {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const bool both = has_replaced(entries_[i]) && has_replaced(entries_[j]);
      if (both && *entries_[i].record.fetched == *entries_[j].record.fetched) {
        return text(entries_[i].record) + " and " + std::to_string(entries_[j].record.number) +
               " replaced the same value";
      }
    }
    if (!entries_[i].record.fetched) continue;
    if (std::string wrong = check_stale(entries_[i].record, *entries_[i].record.fetched); !wrong.empty())
      return wrong;
  }
  AtomicRecord last;
  last.accepted_at = ~std::uint64_t{0};
  last.source = ~std::uint64_t{0};
  if (replacer_of(value) != nullptr) return "the final value " + std::to_string(value) + " had been replaced";
  if (std::string wrong = check_stale(last, value); !wrong.empty()) return "at the end: " + wrong;
  // Counts the values that no known operation has replaced, and the operations that may have replaced one.
  std::size_t left = value != 0 && replacer_of(0) == nullptr ? 1 : 0;
  std::size_t unknown = 0;
  for (const Entry& entry : entries_) {
    if (entry.record.accepted_at == 0 || entry.effect == Effect::reads) continue;
    const std::uint64_t written = entry.record.number;
    if (has_certainly_written(entry) && written != value && replacer_of(written) == nullptr) ++left;
    if (!entry.record.fetched) ++unknown;
  }
  if (left > unknown) return std::to_string(left - unknown) + " values vanished that no operation replaced";
  return {};
}

}  // namespace cluster::sim
