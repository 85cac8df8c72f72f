#include "group/outgoing_messages.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace cluster::group {
namespace {

constexpr std::size_t kPartMin = 64;  ///< a shorter part of a message is not worth its header

void copy_out(std::span<const ConstBytes> slices, std::size_t offset, Bytes out) {
  each_piece<ConstBytes>(slices, offset, out.size(), [&](ConstBytes piece) {
    std::memcpy(out.data(), piece.data(), piece.size());
    out = out.subspan(piece.size());
    return true;
  });
}

}  // namespace

void OutgoingMessages::post(const wire::Segment& shape, std::span<const ConstBytes> slices,
                            std::size_t length, bool keep, Until until, MessageToken token) {
  Waiting message;
  message.shape = shape;
  message.length = length;
  message.until = until;
  message.result.token = token;
  if (keep && length > 0) {
    message.kept = std::make_unique_for_overwrite<std::byte[]>(length);
    copy_out(slices, 0, {message.kept.get(), length});
    message.slices = {ConstBytes(message.kept.get(), length)};
  } else {
    message.slices.assign(slices.begin(), slices.end());
  }
  while (under_way_.free() <= waiting_.size()) under_way_.grow();
  while (finished_.free() <= under_way_.size() + waiting_.size()) finished_.grow();
  waiting_.push_back(std::move(message));
}

std::size_t OutgoingMessages::put(Waiting& message, Bytes out, bool first_in_body) {
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
  // A short message is not divided to fill the rest of a body that already contains other messages.
  if (part < left && !first_in_body && message.posted == 0 && left < 4 * part) return 0;
  segment.length = static_cast<std::uint32_t>(part);
  wire::encode(segment, out.data());
  copy_out(message.slices, message.posted, out.subspan(header, part));
  message.posted += part;
  return header + part;
}

std::size_t OutgoingMessages::cut(Bytes body, std::uint64_t end) {
  std::size_t filled = 0;
  while (!waiting_.empty()) {
    Waiting& message = waiting_.front();
    const std::size_t size = put(message, body.subspan(filled), filled == 0);
    if (size == 0) break;
    filled += size;
    if (message.posted < message.length) break;
    if (message.until == Until::copied) {
      finished_.push_back(message.result);
    } else {
      under_way_.push_back(UnderWay{message.result, end, message.until});
    }
    waiting_.pop_front();
  }
  return filled;
}

void OutgoingMessages::fail(const SocketAddress& listener, std::uint64_t arrived, Status why) {
  const auto fail_one = [&](FinishedMessage& result) {
    if (result.status == Status::ok) result = {result.token, why, listener};
  };
  for (std::size_t i = 0; i < under_way_.size(); ++i)
    if (under_way_[i].end > arrived) fail_one(under_way_[i].result);
  if (!between()) fail_one(waiting_.front().result);
}

void OutgoingMessages::abandon(Status why) {
  for (; !under_way_.empty(); under_way_.pop_front())
    finished_.push_back(FinishedMessage{under_way_.front().result.token, why, {}});
  for (; !waiting_.empty(); waiting_.pop_front())
    finished_.push_back(FinishedMessage{waiting_.front().result.token, why, {}});
}

void OutgoingMessages::advance(std::uint64_t arrived, std::uint64_t delivered) {
  while (!under_way_.empty()) {
    const UnderWay& message = under_way_.front();
    if ((message.until == Until::delivered ? delivered : arrived) < message.end) return;
    finished_.push_back(message.result);
    under_way_.pop_front();
  }
}

}  // namespace cluster::group
