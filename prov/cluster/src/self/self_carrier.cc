#include "self/self_carrier.h"

#include "base/end_of_memory.h"

namespace cluster::self {
namespace {

constexpr std::size_t kPayloadMax = 64 * 1024;
constexpr std::size_t kSegmentsMax = 1024;
constexpr std::size_t kBytesMax = 1024 * 1024;

}  // namespace

std::size_t SelfCarrier::payload_max(const wire::Segment&) const { return kPayloadMax; }

bool SelfCarrier::post(const wire::Segment& segment, const Gather& payload, carrier::PayloadMode,
                       carrier::Token) {
  if (ended_ || queue_.size() == kSegmentsMax || bytes_ + payload.length > kBytesMax) return false;
  ended_ = !enough_memory_for([&] {
    Entry entry{segment, nullptr};
    if (payload.length > 0) {
      entry.payload = std::make_unique_for_overwrite<std::byte[]>(payload.length);
      payload.copy_to(entry.payload.get());
    }
    queue_.push_back(std::move(entry));
    bytes_ += payload.length;
  });
  return !ended_;
}

void SelfCarrier::clear() {
  queue_.clear();
  bytes_ = 0;
  ended_ = false;
}

SelfCarrier::Entry SelfCarrier::pop() {
  Entry entry = std::move(queue_.front());
  queue_.pop_front();
  bytes_ -= entry.segment.length;
  return entry;
}

}  // namespace cluster::self
