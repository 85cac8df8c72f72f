#include "self/self_carrier.h"

namespace cluster::self {
namespace {

constexpr std::size_t kPayloadMax = 64 * 1024;
constexpr std::size_t kSegmentsMax = 1024;
constexpr std::size_t kBytesMax = 1024 * 1024;

}  // namespace

std::size_t SelfCarrier::payload_max(const wire::Segment&) const { return kPayloadMax; }

bool SelfCarrier::post(const wire::Segment& segment, const Gather& payload, carrier::PayloadMode,
                       carrier::Token) {
  if (queue_.size() == kSegmentsMax || bytes_ + payload.length > kBytesMax) return false;
  Entry entry{segment, nullptr};
  if (payload.length > 0) {
    entry.payload = std::make_unique_for_overwrite<std::byte[]>(payload.length);
    payload.copy_to(entry.payload.get());
    bytes_ += payload.length;
  }
  queue_.push_back(std::move(entry));
  return true;
}

SelfCarrier::Entry SelfCarrier::pop() {
  Entry entry = std::move(queue_.front());
  queue_.pop_front();
  bytes_ -= entry.segment.length;
  return entry;
}

void SelfCarrier::put_back(Entry&& entry) {
  bytes_ += entry.segment.length;
  queue_.undo_pop(std::move(entry));
}

}  // namespace cluster::self
