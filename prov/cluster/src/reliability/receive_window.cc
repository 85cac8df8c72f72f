#include "reliability/receive_window.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <utility>

namespace cluster::reliability {

ReceiveWindow::ReceiveWindow(std::size_t size)
    : size_(size),
      slots_(std::min(std::bit_ceil(size), kFirstSlots)),
      mask_(static_cast<std::uint32_t>(slots_.size() - 1)),
      arrived_(size) {}

void ReceiveWindow::grow(std::size_t slots) {
  std::vector<Slot> wider(slots);
  const auto mask = static_cast<std::uint32_t>(slots - 1);
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const bool used = (slots_[i].sequence.value & mask_) == i;
    if (used) wider[slots_[i].sequence.value & mask] = std::move(slots_[i]);
  }
  slots_ = std::move(wider);
  mask_ = mask;
}

ReceiveWindow::Place ReceiveWindow::place_of(Sequence s) const {
  const std::int32_t ahead = s - expected_;
  if (ahead >= static_cast<std::int32_t>(size_) || ahead < -kStaleFrameMax) return Place::outside;
  return ahead < -static_cast<std::int32_t>(size_) ? Place::late : Place::within;
}

ReceiveWindow::Arrival ReceiveWindow::arrive(Sequence s, TransmissionNumber transmission, bool ordered,
                                             ConstBytes segments) {
  const std::int32_t ahead = s - expected_;
  if (ahead >= static_cast<std::int32_t>(slots_.size()))
    grow(std::bit_ceil(static_cast<std::size_t>(ahead) + 1));
  if (holding_ && s == expected_) return Arrival::held;
  Slot& slot = at(s);
  if (came_before(s)) {
    const bool copied_by_network = slot.sequence == s && slot.transmission == transmission;
    if (!copied_by_network) ++spurious_;
    return Arrival::duplicate;
  }
  assert(all_handed_on());
  if (!ordered || s == expected_) {
    current_ = segments;
    given_ = s;
  } else {
    keep(slot, segments);
  }
  slot.sequence = s;
  slot.transmission = transmission;
  if (!s.before(highest_end_)) highest_end_ = s + 1;
  arrived_.insert(s);
  advance();
  return Arrival::fresh;
}

bool ReceiveWindow::takes_run(Sequence s, std::size_t count, bool ordered) const {
  const std::int32_t ahead = s - expected_;
  if (holding_ || ahead < 0 || (ordered && ahead != 0)) return false;
  if (static_cast<std::size_t>(ahead) + count > size_) return false;
  const Sequence end = s + static_cast<std::uint32_t>(count);
  return arrived_.next_member(s, end) == end;
}

ReceiveWindow::Arrival ReceiveWindow::arrive_run(Sequence s, TransmissionNumber transmission,
                                                 std::size_t count) {
  assert(all_handed_on());
  const Sequence end = s + static_cast<std::uint32_t>(count);
  const auto reach = static_cast<std::size_t>(end - expected_);
  if (reach > slots_.size()) grow(std::bit_ceil(reach));
  arrived_.insert(s, end);
  if (end.after(highest_end_)) highest_end_ = end;
  for (; s != end; ++s, ++transmission) {
    Slot& slot = at(s);
    slot.sequence = s;
    slot.transmission = transmission;
  }
  advance();
  return Arrival::fresh;
}

/// Moves `expected_` to the first frame that has not arrived. Removes the frames before it from the set,
/// because the window will need their bits for later sequences.
void ReceiveWindow::advance() {
  const Sequence end = arrived_.next_gap(expected_, highest_end_);
  arrived_.erase(expected_, end);
  expected_ = end;
}

void ReceiveWindow::hold(ConstBytes rest) {
  assert(may_hold());
  Slot& slot = at(given_);
  const bool in_copy =
      !handed_.empty() && rest.data() >= handed_.data() && rest.data() < handed_.data() + handed_.size();
  if (in_copy) {
    handed_.erase(handed_.begin(), handed_.end() - static_cast<std::ptrdiff_t>(rest.size()));
    slot.segments.swap(handed_);
    slot.kept = true;
  } else {
    keep(slot, rest);
  }
  for (Sequence s = given_ + 1; s != expected_; ++s) arrived_.insert(s);
  expected_ = cursor_ = given_;
  if (arrived_.next_member(expected_, highest_end_) == highest_end_) highest_end_ = expected_;
  holding_ = true;
}

TransmissionNumber ReceiveWindow::resume() {
  assert(holding_ && all_handed_on());
  holding_ = false;
  if (highest_end_ == expected_) ++highest_end_;
  arrived_.insert(expected_);
  advance();
  return at(cursor_).transmission;
}

void ReceiveWindow::keep(Slot& slot, ConstBytes segments) {
  if (!spares_.empty()) {
    slot.segments = std::move(spares_.back());
    spares_.pop_back();
  }
  const std::size_t before = slot.segments.capacity();
  slot.segments.assign(segments.begin(), segments.end());
  bytes_ += slot.segments.capacity() - before;
  slot.kept = true;
}

void ReceiveWindow::release_handed() {
  if (handed_.capacity() == 0) return;
  if (spares_.size() < kSparesMax) return spares_.push_back(std::exchange(handed_, {}));
  bytes_ -= handed_.capacity();
  std::vector<std::byte>().swap(handed_);  // an assignment of {} would keep the memory
}

bool ReceiveWindow::next(ConstBytes& segments) {
  release_handed();
  if (!current_.empty()) {
    segments = std::exchange(current_, ConstBytes{});
    return true;
  }
  while (cursor_ != expected_) {
    Slot& slot = at(cursor_);
    ++cursor_;
    if (!slot.kept) continue;
    slot.kept = false;
    given_ = slot.sequence;
    handed_ = std::move(slot.segments);
    slot.segments = {};
    segments = handed_;
    return true;
  }
  return false;
}

void ReceiveWindow::fill_ranges(wire::Ack& ack) const {
  ack.spurious = spurious_;
  ack.count = 0;
  Sequence from = arrived_.next_member(expected_, highest_end_);
  while (from != highest_end_ && ack.count < wire::kAckRangesMax) {
    const Sequence end = arrived_.next_gap(from, highest_end_);
    ack.ranges[ack.count++] = {from, end};
    from = arrived_.next_member(end, highest_end_);
  }
}

std::size_t ReceiveWindow::footprint() const {
  return slots_.capacity() * sizeof(Slot) + spares_.capacity() * sizeof(spares_[0]) + arrived_.footprint() +
         bytes_;
}

}  // namespace cluster::reliability
