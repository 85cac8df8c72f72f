#include "sim/watched_region.h"

#include <algorithm>
#include <cstring>

#include "sim/guard.h"

namespace cluster::sim {
namespace {

/// The blank value of a slot whose content is all kBlank or ends with it. The last byte may come alone, and
/// must change the slot visibly.
constexpr std::byte kOtherBlank{0x12};
constexpr std::byte kSealed{0x77};
constexpr std::size_t kGapMax = 32;
/// Marks the numbers of the contents of reading parts.
constexpr MessageNumber kReadingContent = MessageNumber{1} << 56;

}  // namespace

WatchedRegion::WatchedRegion(const Shape& shape)
    : shape_(shape), memory_(length() + 2 * kMarginBytes, kGuard), next_(shape.reading) {
  fill_content(kReadingContent | shape_.key, {base(), shape_.reading});
  std::fill_n(base() + shape_.reading, shape_.writing, kBlank);
}

protocol::MemoryRegion WatchedRegion::region() {
  return {.base = base(),
          .start = shape_.start,
          .length = length(),
          .readable = shape_.readable,
          .writable = shape_.writable};
}

std::optional<std::size_t> WatchedRegion::allocate_slot(std::size_t length, SeededRandom& random) {
  const std::size_t with_gap = length + 1 + random.below(kGapMax);
  if (with_gap > shape_.writing) return std::nullopt;
  if (next_ + with_gap > this->length()) next_ = shape_.reading;
  // Slots of operations that have ended are used again.
  auto slot = slots_.lower_bound(next_);
  if (slot != slots_.begin()) {
    const auto before = std::prev(slot);
    if (before->first + std::max<std::size_t>(before->second.length, 1) > next_) slot = before;
  }
  const auto first = slot;
  for (; slot != slots_.end() && slot->first < next_ + with_gap; ++slot) {
    if (slot->second.state == State::awaited) return std::nullopt;
    if (!slot_intact(slot->first, slot->second)) return std::nullopt;  // the final check finds the slot
  }
  for (auto over = first; over != slot; ++over) {
    std::fill_n(base() + over->first, over->second.length, kBlank);
  }
  slots_.erase(first, slot);
  const std::size_t offset = next_;
  next_ += with_gap;
  slots_[offset].length = length;
  return offset;
}

void WatchedRegion::expect(std::size_t offset, MessageNumber content, std::size_t from) {
  Slot& slot = slots_.at(offset);
  slot.content = content;
  slot.from = from;
  if (slot.length == 0) return;
  std::vector<std::byte> whole(from + slot.length);
  fill_content(content, whole);
  if (whole.back() != slot.blank && !landed(offset)) return;
  slot.blank = kOtherBlank;
  std::fill_n(base() + offset, slot.length, slot.blank);
}

void WatchedRegion::release_slot(std::size_t offset) {
  const Slot& slot = slots_.at(offset);
  const Bytes bytes{base() + offset, slot.length};
  if (all(bytes, slot.blank)) std::fill(bytes.begin(), bytes.end(), kBlank);
  slots_.erase(offset);
}

bool WatchedRegion::landed(std::size_t offset) const {
  const Slot& slot = slots_.at(offset);
  if (slot.state == State::sealed) return true;
  return first_wrong_byte(slot.content, at(offset, slot.length), slot.from) == slot.length;
}

void WatchedRegion::seal(std::size_t offset) {
  Slot& slot = slots_.at(offset);
  slot.state = State::sealed;
  std::fill_n(base() + offset, slot.length, kSealed);
  if (frozen_) std::fill_n(frozen_->data() + kMarginBytes + offset, slot.length, kSealed);
}

ConstBytes WatchedRegion::at(std::size_t offset, std::size_t length) const {
  return {base() + offset, length};
}

bool WatchedRegion::slot_intact(std::size_t offset, const Slot& slot) const {
  const ConstBytes bytes = at(offset, slot.length);
  if (slot.state == State::sealed) return all(bytes, kSealed);
  std::vector<std::byte> right(slot.from + slot.length);
  fill_content(slot.content, right);
  for (std::size_t i = 0; i < slot.length; ++i) {
    if (bytes[i] != slot.blank && bytes[i] != right[slot.from + i]) return false;
  }
  return true;
}

std::string WatchedRegion::violation() const {
  if (frozen_ && *frozen_ != memory_) return "written after it had been closed";
  if (!all({memory_.data(), kMarginBytes}, kGuard)) return "written before its beginning";
  if (!all({base() + length(), kMarginBytes}, kGuard)) return "written behind its end";
  if (first_wrong_byte(kReadingContent | shape_.key, {base(), shape_.reading}) != shape_.reading) {
    return "written where no operation writes";
  }
  std::size_t gap = shape_.reading;
  for (const auto& [offset, slot] : slots_) {
    if (!all({base() + gap, offset - gap}, kBlank)) return "written between two slots";
    if (!slot_intact(offset, slot)) {
      return slot.state == State::sealed ? "written twice" : "written with wrong bytes";
    }
    gap = offset + slot.length;
  }
  return all({base() + gap, length() - gap}, kBlank) ? "" : "written behind the last slot";
}

}  // namespace cluster::sim
