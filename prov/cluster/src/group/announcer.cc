#include "group/announcer.h"

#include <array>

#include "group/limits.h"
#include "wire/frame.h"

namespace cluster::group {

void Announcer::run(Time now, link::Link& link, const link::Path& group, std::size_t members) {
  if (now < next_) return;
  std::array<std::byte, sizeof(wire::FrameHeader)> bytes;
  wire::FrameHeader& header = wire::header_at(bytes.data());
  header.kind = static_cast<std::uint8_t>(wire::FrameKind::group_announce);
  header.sequence = static_cast<std::uint32_t>(key_);
  header.transmission = static_cast<std::uint32_t>(key_ >> 32);
  const ConstBytes whole(bytes);
  wire::encode_frame(header, {&whole, 1}, link.integrity());
  link::OutFrame frame;
  frame.path = &group;
  frame.add(whole);
  link.send_burst({&frame, 1});
  const bool first = ++sent_ < kAnnouncesFirst;
  next_ = now + (first ? kAnnounceFirst : kAnnounceInterval * static_cast<std::int64_t>(1 + members / 32));
}

bool Announcer::settled() const { return sent_ >= kAnnouncesFirst; }

}  // namespace cluster::group
