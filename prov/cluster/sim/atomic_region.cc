#include "sim/atomic_region.h"

#include <algorithm>
#include <cstring>

#include "sim/guard.h"

namespace cluster::sim {
namespace {

using wire::AtomicOp;
using wire::AtomicType;

std::uint64_t load(const std::byte* from, std::size_t size) {
  std::uint64_t value = 0;
  std::memcpy(&value, from, size);  // little-endian, as everything on the wire
  return value;
}

WordOperation::Kind kind_of(AtomicOp op) {
  using Kind = WordOperation::Kind;
  switch (op) {
    case AtomicOp::min: return Kind::least;
    case AtomicOp::max: return Kind::greatest;
    case AtomicOp::sum: return Kind::sum;
    case AtomicOp::bor: return Kind::bor;
    case AtomicOp::band: return Kind::band;
    case AtomicOp::bxor: return Kind::bxor;
    case AtomicOp::write: return Kind::write;
    case AtomicOp::cswap: return Kind::swap_if_equal;
    case AtomicOp::cswap_ne: return Kind::swap_if_not_equal;
    case AtomicOp::cswap_le: return Kind::swap_if_less_or_equal;
    case AtomicOp::cswap_lt: return Kind::swap_if_less;
    case AtomicOp::cswap_ge: return Kind::swap_if_greater_or_equal;
    case AtomicOp::cswap_gt: return Kind::swap_if_greater;
    case AtomicOp::mswap: return Kind::swap_masked;
    default: return Kind::read;
  }
}

/// Operations that replace get an operand of their own. Operations that combine get a small operand, so that
/// later operations still show.
std::uint64_t operand_of(AtomicOp op, std::uint64_t number) {
  switch (op) {
    case AtomicOp::sum: return 1 + number % 5;
    case AtomicOp::bor:
    case AtomicOp::bxor: return std::uint64_t{1} << number % 8;
    case AtomicOp::band: return ~(std::uint64_t{1} << number % 8);
    default: return number;
  }
}

}  // namespace

AtomicRegion::AtomicRegion(const Shape& shape) : shape_(shape) {
  rows_ = {{AtomicType::uint64, DigitKind::sum},  {AtomicType::int32, DigitKind::sum},
           {AtomicType::uint64, DigitKind::bxor}, {AtomicType::uint16, DigitKind::bor},
           {AtomicType::uint64, DigitKind::band}, {AtomicType::uint64, std::nullopt},
           {AtomicType::uint32, std::nullopt},    {AtomicType::uint64, std::nullopt, true},
           {AtomicType::uint32, {}, true},        {AtomicType::uint16, {}, true},
           {AtomicType::uint8, {}, true}};
  std::size_t bytes = 0;
  for (Row& row : rows_) {
    row.offset = bytes;
    bytes += kRowWords * size_of(row.type);
  }
  memory_.assign(bytes + 2 * kMarginBytes, kGuard);
  for (Row& row : rows_) {
    const std::size_t size = size_of(row.type);
    if (row.digit_kind) {
      row.digits.assign(kRowWords, DigitHistory(*row.digit_kind, static_cast<unsigned>(8 * size)));
    } else if (row.takes_all) {
      row.mixed.assign(kRowWords, WordHistory(static_cast<unsigned>(8 * size)));
    } else {
      row.registers.resize(kRowWords);
    }
    for (std::size_t word = 0; word < kRowWords; ++word) {
      const std::uint64_t value = row.digit_kind ? row.digits[word].initial() : 0;
      std::memcpy(memory_.data() + kMarginBytes + row.offset + word * size, &value, size);
    }
  }
}

protocol::MemoryRegion AtomicRegion::region() {
  return {.base = memory_.data() + kMarginBytes,
          .start = shape_.start,
          .length = length(),
          .readable = true,
          .writable = true};
}

std::size_t AtomicRegion::offset_of(std::size_t row, std::size_t word) const {
  return rows_[row].offset + word * size_of(rows_[row].type);
}

std::uint64_t AtomicRegion::value(std::size_t row, std::size_t word) const {
  return load(memory_.data() + kMarginBytes + offset_of(row, word), size_of(rows_[row].type));
}

AtomicOp AtomicRegion::digit_op(std::size_t row) const {
  switch (*rows_[row].digit_kind) {
    case DigitKind::sum: return AtomicOp::sum;
    case DigitKind::bxor: return AtomicOp::bxor;
    case DigitKind::bor: return AtomicOp::bor;
    case DigitKind::band: return AtomicOp::band;
  }
  return AtomicOp::read;
}

bool AtomicRegion::has_space(std::size_t row, std::size_t first, std::size_t count) const {
  if (first + count > kRowWords) return false;
  for (std::size_t word = first; word < first + count; ++word) {
    if (has_digits(row) && rows_[row].digits[word].full()) return false;
    if (is_mixed(row) && rows_[row].mixed[word].full()) return false;
  }
  return true;
}

std::size_t AtomicRegion::mixed_from() const {
  std::size_t row = 0;
  while (!is_mixed(row)) ++row;
  return row;
}

std::size_t AtomicRegion::histories() const {
  std::size_t count = 0;
  for (const Row& row : rows_) {
    count += static_cast<std::size_t>(std::count_if(row.mixed.begin(), row.mixed.end(),
                                                    [](const WordHistory& word) { return word.size() > 1; }));
  }
  return count;
}

void AtomicRegion::add(AtomicAccess& access, std::uint64_t number, std::uint64_t source) {
  using Effect = RegisterHistory::Effect;
  Row& row = rows_[access.row];
  const bool reads = access.code.op == AtomicOp::read;
  for (std::size_t i = 0; i < access.count; ++i) {
    const std::size_t word = access.first + i;
    if (row.digit_kind) {
      if (reads) continue;
      access.records.push_back(row.digits[word].add(number, source));
      access.operands.push_back(row.digits[word].operand(access.records.back()));
    } else if (row.takes_all) {
      const std::uint64_t operand = operand_of(access.code.op, number);
      const std::uint64_t comparand = access.code.compares() ? access.comparands[i] : 0;
      access.records.push_back(
          row.mixed[word].add(number, source, kind_of(access.code.op), operand, comparand));
      if (!reads) access.operands.push_back(operand);
    } else {
      const Effect effect = reads                    ? Effect::reads
                            : access.code.compares() ? Effect::writes_if_equal
                                                     : Effect::writes;
      const std::uint64_t comparand = access.code.compares() ? access.comparands[i] : 0;
      access.records.push_back(row.registers[word].add(number, source, effect, comparand));
      if (!reads) access.operands.push_back(number);
    }
  }
}

AtomicRecord& AtomicRegion::record(const AtomicAccess& access, std::size_t index) {
  Row& row = rows_[access.row];
  const std::size_t word = access.first + index;
  if (row.takes_all) return row.mixed[word].record(access.records[index]);
  return row.digit_kind ? row.digits[word].record(access.records[index])
                        : row.registers[word].record(access.records[index]);
}

void AtomicRegion::accepted(const AtomicAccess& access, std::uint64_t time) {
  for (std::size_t i = 0; i < access.records.size(); ++i) record(access, i).accepted_at = time;
}

std::string AtomicRegion::ended(const AtomicAccess& access, AtomicRecord reader, ConstBytes results) {
  Row& row = rows_[access.row];
  const std::size_t size = size_of(row.type);
  for (std::size_t i = 0; i < access.count; ++i) {
    const std::size_t word = access.first + i;
    const bool recorded = i < access.records.size();
    AtomicRecord& own = recorded ? record(access, i) : reader;
    own.ended_at = reader.ended_at;
    own.succeeded = true;
    if (results.empty()) continue;
    const std::uint64_t value = load(results.data() + i * size, size);
    own.fetched = value;
    if (const std::string wrong = ended(row, word, access, i, own); !wrong.empty())
      return wrong + " (word " + std::to_string(word) + " of row " + std::to_string(access.row) + ")";
  }
  return {};
}

/// Judges a fetched value. The history of a word that takes operations of every kind is judged in
/// check_final().
std::string AtomicRegion::ended(Row& row, std::size_t word, const AtomicAccess& access, std::size_t index,
                                const AtomicRecord& own) {
  if (row.takes_all) return {};
  if (!row.digit_kind) return row.registers[word].fetched(access.records[index], *own.fetched);
  return index < access.records.size() ? row.digits[word].fetched(access.records[index], *own.fetched)
                                       : row.digits[word].read(own);
}

void AtomicRegion::expect(const AtomicAccess& access) {
  for (std::size_t i = 0; i < access.records.size(); ++i) record(access, i).must_execute = true;
}

std::string AtomicRegion::check_final() const {
  if (!all({memory_.data(), kMarginBytes}, kGuard)) return "something was written before its beginning";
  if (!all({memory_.data() + kMarginBytes + length(), kMarginBytes}, kGuard))
    return "something was written behind its end";
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    for (std::size_t word = 0; word < kRowWords; ++word) {
      const std::uint64_t last = value(row, word);
      const std::string wrong = rows_[row].takes_all    ? rows_[row].mixed[word].check_final(last)
                                : rows_[row].digit_kind ? rows_[row].digits[word].check_final(last)
                                                        : rows_[row].registers[word].check_final(last);
      if (wrong.empty()) continue;
      return wrong + " (word " + std::to_string(word) + " of row " + std::to_string(row) + ")";
    }
  }
  return {};
}

}  // namespace cluster::sim
