#include "group/outgoing_messages.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace cluster::group {
namespace {

constexpr std::size_t kPartMin = 64;  ///< a shorter beginning of a message is not worth its header

void copy_out(std::span<const ConstBytes> slices, std::size_t offset, Bytes out) {
  each_piece<ConstBytes>(slices, offset, out.size(), [&](ConstBytes piece) {
    std::memcpy(out.data(), piece.data(), piece.size());
    out = out.subspan(piece.size());
    return true;
  });
}

}  // namespace

void MessageCutter::post(const wire::Segment& shape, std::span<const ConstBytes> slices, std::size_t length,
                         bool keep) {
  Waiting message;
  message.shape = shape;
  message.length = length;
  if (keep && length > 0) {
    message.kept = std::make_unique_for_overwrite<std::byte[]>(length);
    copy_out(slices, 0, {message.kept.get(), length});
    message.slices = {ConstBytes(message.kept.get(), length)};
  } else {
    message.slices.assign(slices.begin(), slices.end());
  }
  waiting_.push_back(std::move(message));
}

std::size_t MessageCutter::put(Waiting& message, Bytes out, bool first_in_body) {
  using wire::SegmentKind;
  wire::Segment segment = message.posted == 0 ? message.shape : wire::Segment{};
  const std::size_t left = message.length - message.posted;
  segment.kind = message.posted == 0 ? SegmentKind::eager : SegmentKind::eager_next;
  std::size_t header = wire::encoded_size(segment);
  if (message.posted == 0 && header + left > out.size()) {
    segment.kind = SegmentKind::eager_first;
    segment.total = message.length;
    header = wire::encoded_size(segment);
  }
  if (out.size() < header + std::min(left, kPartMin)) return 0;
  const std::size_t part = std::min(left, out.size() - header);
  // What fits into a body of its own is not cut for the rest of another one.
  if (part < left && !first_in_body && message.posted == 0 && left < 4 * part) return 0;
  segment.length = static_cast<std::uint32_t>(part);
  wire::encode(segment, out.data());
  copy_out(message.slices, message.posted, out.subspan(header, part));
  message.posted += part;
  return header + part;
}

MessageCutter::Body MessageCutter::fill(Bytes body) {
  Body filled;
  while (!waiting_.empty()) {
    Waiting& message = waiting_.front();
    const std::size_t size = put(message, body.subspan(filled.size), filled.size == 0);
    if (size == 0) break;
    filled.size += size;
    if (message.posted < message.length) break;
    ++filled.ended;
    waiting_.pop_front();
  }
  return filled;
}

void MessageProgress::reserve() {
  if (uncut_.free() == 0) uncut_.grow();
  while (under_way_.free() <= uncut_.size()) under_way_.grow();
  while (finished_.free() <= under_way_.size() + uncut_.size()) finished_.grow();
}

void MessageProgress::cut(std::uint64_t end) {
  const auto [token, until] = uncut_.front();
  uncut_.pop_front();
  if (until == Until::copied) {
    finished_.push_back(FinishedMessage{token, Status::ok, {}});
  } else {
    under_way_.push_back(UnderWay{token, end, until});
  }
}

void MessageProgress::fail(const Listener& listener, Status why) {
  for (std::size_t i = 0; i < under_way_.size(); ++i) {
    UnderWay& message = under_way_[i];
    if (message.status != Status::ok || message.end <= listener.arrived) continue;
    message.status = why;
    message.culprit = listener.name;
  }
}

void MessageProgress::abandon(Status why) {
  for (; !under_way_.empty(); under_way_.pop_front())
    finished_.push_back(FinishedMessage{under_way_.front().token, why, {}});
  for (; !uncut_.empty(); uncut_.pop_front())
    finished_.push_back(FinishedMessage{uncut_.front().first, why, {}});
}

void MessageProgress::advance(std::uint64_t arrived, std::uint64_t delivered) {
  while (!under_way_.empty()) {
    const UnderWay& message = under_way_.front();
    if ((message.until == Until::delivered ? delivered : arrived) < message.end) return;
    finished_.push_back(FinishedMessage{message.token, message.status, message.culprit});
    under_way_.pop_front();
  }
}

}  // namespace cluster::group
