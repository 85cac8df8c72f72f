#include "os/ring_table.h"

#include <algorithm>
#include <numeric>

namespace cluster::os {

using State = RingPlace::State;

std::size_t RingList::index_of(std::uint64_t serial) const {
  const auto end = places_.begin() + static_cast<std::ptrdiff_t>(count_);
  const auto found =
      std::find_if(places_.begin(), end, [&](const RingPlace& place) { return place.serial == serial; });
  return static_cast<std::size_t>(found - places_.begin());
}

std::size_t RingList::entered() const {
  std::size_t count = 0;
  while (count < count_ && places_[count].state == State::entered) ++count;
  return count;
}

std::size_t RingList::owned() const {
  return static_cast<std::size_t>(std::count_if(places_.begin(),
                                                places_.begin() + static_cast<std::ptrdiff_t>(count_),
                                                [](const RingPlace& place) { return place.owner != 0; }));
}

std::size_t RingList::blocks() const {
  return std::accumulate(places_.begin(), places_.begin() + static_cast<std::ptrdiff_t>(count_),
                         std::size_t{0},
                         [](std::size_t sum, const RingPlace& place) { return sum + place.blocks; });
}

RingPlace* RingList::find(std::uint64_t serial) {
  const std::size_t index = index_of(serial);
  return index < count_ ? &places_[index] : nullptr;
}

RingPlace* RingList::find_free(const RingLayout& layout) {
  for (std::size_t i = 0; i < entered(); ++i) {
    if (places_[i].owner == 0 && places_[i].layout == layout) return &places_[i];
  }
  return nullptr;
}

RingPlace& RingList::reserve(std::uint64_t serial, std::uint32_t owner, const SocketAddress& address,
                             const RingLayout& layout, std::uint32_t blocks) {
  RingPlace& place = places_[count_];
  place = {serial, address, State::reserved, owner, layout, blocks};
  ++count_;
  return place;
}

bool RingList::is_next(std::uint64_t serial) const { return index_of(serial) == entered(); }

void RingList::erase(std::uint64_t serial) {
  const std::size_t index = index_of(serial);
  if (index >= count_) return;
  std::copy(places_.begin() + static_cast<std::ptrdiff_t>(index) + 1,
            places_.begin() + static_cast<std::ptrdiff_t>(count_),
            places_.begin() + static_cast<std::ptrdiff_t>(index));
  --count_;
}

std::vector<std::uint64_t> RingList::free_dead(const Alive& alive) {
  std::vector<std::uint64_t> gone;
  for (std::size_t i = 0; i < count_; ++i) {
    RingPlace& place = places_[i];
    if (place.owner != 0 && !alive(place.owner)) {
      place.owner = 0;
      ++changes;
    }
    if (place.owner == 0 && place.state != State::entered) gone.push_back(place.serial);
  }
  return gone;
}

std::vector<std::uint64_t> RingList::trim() {
  std::vector<std::uint64_t> gone;
  for (std::size_t i = count_; i != 0 && places_[i - 1].owner == 0; --i) {
    places_[i - 1].state = State::leaving;
    gone.push_back(places_[i - 1].serial);
  }
  return gone;
}

std::vector<RingTarget> RingList::targets() const {
  std::vector<RingTarget> all;
  for (std::size_t i = 0; i < entered(); ++i) {
    if (places_[i].owner != 0) all.push_back({places_[i].address, static_cast<std::uint32_t>(i)});
  }
  return all;
}

std::size_t RingTable::blocks() const {
  return std::accumulate(lists.begin(), lists.end(), std::size_t{0},
                         [](std::size_t sum, const RingList& list) { return sum + list.blocks(); });
}

RingUsage RingTable::usage() const {
  const auto owned = [this](RingKind kind) { return lists[static_cast<std::size_t>(kind)].owned(); };
  RingUsage usage{owned(RingKind::v4) + owned(RingKind::v6), 0, blocks() * kRingBlockBytes};
  for (const RingList& list : lists) usage.rings += list.size();
  return usage;
}

}  // namespace cluster::os
