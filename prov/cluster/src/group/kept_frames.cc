#include "group/kept_frames.h"

#include <array>

#include "wire/frame.h"
#include "wire/frame_encoder.h"

namespace cluster::group {
namespace {

constexpr std::size_t kHeader = sizeof(wire::FrameHeader);

}  // namespace

Bytes KeptFrames::blank() {
  std::unique_ptr<std::byte[]>& bytes = at(next_).bytes;
  if (bytes == nullptr) bytes = std::make_unique_for_overwrite<std::byte[]>(kHeader + body_max_);
  return {bytes.get() + kHeader, body_max_};
}

void KeptFrames::append(std::size_t size) {
  KeptFrame& fresh = at(next_++);
  fresh.size = size;
  fresh.repaired = fresh.repair_due = false;
  fresh.missing.clear();
}

std::size_t KeptFrames::send(Time now, link::Link& link, const link::Path& path, std::span<const std::uint64_t> sequences,
                             bool report) {
  std::array<link::OutFrame, link::kBurstMax> out;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    KeptFrame& leaving = at(sequences[i]);
    const ConstBytes whole(leaving.bytes.get(), kHeader + leaving.size);
    wire::FrameHeader& header = wire::header_at(leaving.bytes.get());
    header.kind = static_cast<std::uint8_t>(wire::FrameKind::group);
    header.flags = wire::frame_flag::kSequenced;
    if (report && sequences[i] + 1 == next_) header.flags |= wire::frame_flag::kAckNow;
    header.session = stream_;
    header.sequence = static_cast<std::uint32_t>(sequences[i]);
    header.transmission = static_cast<std::uint32_t>(key_);
    header.ack = static_cast<std::uint32_t>(next_);
    wire::encode_frame(header, {&whole, 1});
    leaving.sent_at = now;
    out[i].path = &path;
    out[i].add(whole);
  }
  return link.send_burst(std::span(out).first(sequences.size()));
}

bool KeptFrames::post(Listener& listener, std::uint64_t sequence) const {
  const KeptFrame& kept = at(sequence);
  const wire::Segment segment{.kind = wire::SegmentKind::group_repair, .id = stream_, .offset = sequence, .key = key_};
  if (listener.carrier == nullptr || kept.size > listener.carrier->payload_max(segment)) return false;
  if (!carrier::post_copy(*listener.carrier, segment, ConstBytes(kept.bytes.get() + kHeader, kept.size))) return false;
  listener.posted = true;
  return true;
}

}  // namespace cluster::group
