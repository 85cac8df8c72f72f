#include "group/receiver_stream.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace cluster::group {
namespace {

/// Returns a random delay. Its maximum is kNakBackoff for each doubling of the group.
Duration backoff(Random& random, std::size_t group_size) {
  const auto most = static_cast<std::uint64_t>(kNakBackoff.count()) * std::bit_width(group_size);
  return Duration(static_cast<std::int64_t>(random.next() % (most + 1)));
}

}  // namespace

ReceiverStream::ReceiverStream(std::uint32_t id, std::uint64_t start, Random& random, SpareBodies& spare)
    : id_(id),
      random_(random),
      spare_(spare),
      delivered_(start),
      arrived_(start),
      end_(start),
      reported_delivered_(start) {}

bool ReceiverStream::receive(Time now, const Arrival& arrival, std::size_t group_size) {
  prepare();
  // A correct sender does not send beyond the limit. If this side accepted a larger end, it would request
  // frames that never arrive.
  const std::uint64_t limit = delivered_ + kStreamWindow;
  if (arrival.end <= limit) end_ = std::max(end_, arrival.end);
  if (arrival.route == Route::multicast) by_multicast_ = true;
  const bool fits = arrival.sequence >= arrived_ && arrival.sequence < limit;
  bool fresh = false;
  if (!arrival.body.empty() && fits && kept(arrival.sequence).size == 0) {
    Kept& place = kept(arrival.sequence);
    place.bytes = spare_.take(arrival.body.size());
    std::memcpy(place.bytes.get(), arrival.body.data(), arrival.body.size());
    place.size = arrival.body.size();
    const bool fills_gap = arrival.sequence + 1 < end_;
    end_ = std::max(end_, arrival.sequence + 1);
    newest_at_ = now - arrival.age;
    fresh = true;
    const std::uint64_t before = arrived_;
    while (arrived_ < limit && kept(arrived_).size != 0) ++arrived_;
    if (arrived_ != before) nak_retry_ = kNakRetry;
    const bool at_once = ++unreported_ >= kFramesPerStatus || (fills_gap && arrived_ == end_);
    want_status(at_once ? now : now + kStatusDelay);
  }
  // A duplicate sent by unicast shows that the sender does not know which frames this member has received.
  if (arrival.status_wanted || (!fresh && arrival.route == Route::unicast)) want_status(now);
  watch_gap(now, group_size);
  return fresh;
}

void ReceiverStream::asked(Time now, std::uint64_t end, std::size_t group_size) {
  prepare();
  if (end <= delivered_ + kStreamWindow) end_ = std::max(end_, end);
  want_status(now);
  watch_gap(now, group_size);
}

void ReceiverStream::watch_gap(Time now, std::size_t group_size) {
  if (arrived_ >= end_) {
    nak_at_ = kNever;
  } else if (nak_at_ == kNever) {
    nak_at_ = now + backoff(random_, group_size);
  }
}

ConstBytes ReceiverStream::front() const {
  if (delivered_ == arrived_) return {};
  const Kept& place = kept(delivered_);
  return ConstBytes(place.bytes.get(), place.size).subspan(consumed_);
}

void ReceiverStream::consume(std::size_t size) {
  consumed_ += size;
  Kept& place = kept(delivered_);
  if (consumed_ < place.size) return;
  spare_.give(std::move(place.bytes), place.size);
  place = {};
  consumed_ = 0;
  ++delivered_;
  // The sender must learn the new limit after a quarter of the window, and when all arrived frames are
  // delivered.
  const bool caught_up = delivered_ == arrived_ && unreported_ == 0 && reported_delivered_ != delivered_;
  if (delivered_ - reported_delivered_ >= kStreamWindow / 4 || caught_up) want_status(Time::min());
}

ReceiverStream::StreamStatus ReceiverStream::status(Time now) const {
  return {arrived_, delivered_ + kStreamWindow, newest_at_ == Time{} ? Duration::zero() : now - newest_at_,
          by_multicast_};
}

void ReceiverStream::status_sent() {
  status_at_ = kNever;
  unreported_ = 0;
  by_multicast_ = false;
  reported_delivered_ = delivered_;
}

std::size_t ReceiverStream::take_gaps(Time now, std::array<Gap, kNakRanges>& gaps) {
  std::size_t count = 0;
  for (std::uint64_t at = arrived_; at < end_ && count < gaps.size();) {
    const std::uint64_t first = at;
    while (at < end_ && kept(at).size == 0) ++at;
    if (at != first) gaps[count++] = {first, at - first};
    while (at < end_ && kept(at).size != 0) ++at;
  }
  nak_at_ = count == 0 ? kNever : now + nak_retry_;
  nak_retry_ = std::min(nak_retry_ * 2, kNakRetryMax);
  return count;
}

}  // namespace cluster::group
