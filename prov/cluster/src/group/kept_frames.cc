#include "group/kept_frames.h"

#include <algorithm>
#include <utility>

#include "wire/frame.h"

namespace cluster::group {
namespace {

constexpr std::size_t kHeader = sizeof(wire::FrameHeader);
constexpr std::size_t kRepairPartMin = 512;  ///< a shorter part is not worth its headers

}  // namespace

Bytes KeptFrames::blank() {
  std::unique_ptr<std::byte[]>& bytes = at(next_).bytes;
  if (bytes == nullptr && !spare_.empty()) {
    bytes = std::move(spare_.back());
    spare_.pop_back();
  }
  if (bytes == nullptr) bytes = std::make_unique_for_overwrite<std::byte[]>(kHeader + body_max_);
  return {bytes.get() + kHeader, body_max_};
}

void KeptFrames::release_before(std::uint64_t base) {
  for (; base_ < base; ++base_) spare_.push_back(std::move(at(base_).bytes));
}

void KeptFrames::append(std::size_t size) {
  KeptFrame& fresh = at(next_++);
  fresh.size = size;
  fresh.repaired = fresh.repair_due = false;
  fresh.missing.clear();
}

std::size_t KeptFrames::send(Time now, link::Link& link, const link::Path& path,
                             std::span<const std::uint64_t> sequences, bool report) {
  burst_->clear();
  for (const std::uint64_t sequence : sequences) {
    KeptFrame& leaving = at(sequence);
    const ConstBytes whole(leaving.bytes.get(), kHeader + leaving.size);
    wire::FrameHeader& header = wire::header_at(leaving.bytes.get());
    header.kind = static_cast<std::uint8_t>(wire::FrameKind::group);
    header.flags = wire::frame_flag::kSequenced;
    if (report && sequence + 1 == next_) header.flags |= wire::frame_flag::kAckNow;
    header.session = stream_.id;
    header.sequence = static_cast<std::uint32_t>(sequence);
    header.transmission = static_cast<std::uint32_t>(stream_.key);
    header.ack = static_cast<std::uint32_t>(sequence + 1);
    header.largest_acked = static_cast<std::uint32_t>(stream_.membership);
    wire::encode_frame(header, {&whole, 1}, link.integrity());
    leaving.sent_at = now;
    link::OutFrame& out = burst_->add();
    out.path = &path;
    out.add(whole);
  }
  return link.send_burst(burst_->frames());
}

bool KeptFrames::repeat(Time now, link::Link& link, const link::Path& path, std::uint64_t sequence) {
  KeptFrame& frame = at(sequence);
  if (frame.repair_due || send(now, link, path, {&sequence, 1}, false) == 0) return false;
  frame.repaired = true;
  frame.repaired_at = now;
  return true;
}

bool KeptFrames::post(Listener& listener, std::uint64_t sequence) const {
  if (listener.carrier == nullptr) return false;
  const KeptFrame& kept = at(sequence);
  const ConstBytes body(kept.bytes.get() + kHeader, kept.size);
  std::size_t sent = listener.part.of == sequence ? listener.part.end : 0;
  listener.part.of = Listener::kNoPart;
  while (sent < body.size()) {
    const wire::Segment segment{.kind = wire::SegmentKind::group_repair,
                                .id = stream_.id,
                                .peer_id = static_cast<std::uint32_t>(sent),
                                .offset = sequence,
                                .total = body.size(),
                                .key = stream_.key};
    const std::size_t part = std::min(body.size() - sent, listener.carrier->payload_max(segment));
    const bool worth_it = sent + part == body.size() || part >= kRepairPartMin;
    if (!worth_it || !carrier::post_copy(*listener.carrier, segment, body.subspan(sent, part))) {
      if (sent != 0) listener.part.of = sequence;
      listener.part.end = sent;
      return false;
    }
    sent += part;
    listener.posted = true;
  }
  return true;
}

}  // namespace cluster::group
