#include "shm/ring_reader.h"

#include <cassert>
#include <cstring>

namespace cluster::shm {

RingReader::RingReader(Bytes memory, const Geometry& geometry)
    : ring_(memory, geometry),
      segment_doorbell_(ring_.control->segment_doorbell),
      space_doorbell_(ring_.control->space_doorbell),
      recall_(ring_.control->held, ring_.control->taking) {
  assert(geometry.valid() && memory.size() == geometry.total_bytes());
  segment_doorbell_.announce_fence();
}

bool RingReader::read(wire::Segment& segment, ConstBytes& payload) {
  if (broken_) return false;
  // A caller that polls the same segment again has stopped taking segments. So the reader returns all free
  // space to the writer now.
  if (shown_) publish();
  const Slot& slot = ring_.slot(position_);
  const std::uint32_t length = once(slot.length);
  const std::uint32_t offset = once(slot.offset);
  const std::size_t header_size = once(slot.header_size);
  std::memcpy(slot_copy_, slot.inline_bytes, sizeof slot_copy_);
  if (header_size == 0 || header_size > sizeof slot_copy_) return set_broken();
  if (wire::decode({slot_copy_, header_size}, segment) != header_size || segment.length != length)
    return set_broken();
  if (once(slot.withdrawn) != 0) segment = {.kind = wire::SegmentKind::padding, .length = length};
  if (offset == Slot::kInline) {
    if (length > sizeof slot_copy_ - header_size) return set_broken();
    payload = {slot_copy_ + header_size, length};
    block_ = 0;
  } else {
    const std::byte* place = nullptr;
    if (!find_in_arena(offset, length, place)) return set_broken();
    payload = {place, length};
  }
  shown_ = true;
  return true;
}

bool RingReader::set_broken() {
  broken_ = true;
  return false;
}

}  // namespace cluster::shm
