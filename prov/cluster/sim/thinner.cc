#include "sim/thinner.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "wire/frame.h"

namespace cluster::sim {

using link::Thinning;

bool Thinner::one_in(unsigned shift) {
  die_ = die_ * 1664525 + 1013904223;
  return (die_ >> 16 & ((1u << shift) - 1)) == 0;
}

Thinner::Place Thinner::place_of(Time now, const Packet& packet) {
  wire::FrameHeader header{};
  if (!packet.bytes.empty())
    std::memcpy(&header, packet.bytes.data(), std::min(packet.bytes.size(), sizeof header));
  const bool keep_alive = header.kind == static_cast<std::uint8_t>(wire::FrameKind::keep_alive);
  if (keep_alive && (!thinning_.on || !one_in(Thinning::kKeepAliveShift))) return to_responder(now);
  return thinning_.on && (keep_alive || !thinning_.passes(header.session)) ? Place::aside : Place::engine;
}

/// With a real responder, excess frames would wait for long. Here they are dropped.
Thinner::Place Thinner::to_responder(Time now) {
  if (now >= answers_until_) {
    answers_until_ = now + kAnswersInterval;
    answers_ = 0;
  }
  return answers_++ < kAnswersPerInterval ? Place::responder : Place::nowhere;
}

void Thinner::put_aside(std::unique_ptr<Packet>& packet) {
  if (aside_.size() < 2 * Thinning::kAsideFrames) aside_.push_back(std::move(packet));
}

std::unique_ptr<Packet> Thinner::take_aside(Time now) {
  if (left_ == 0 && now >= next_look_) {
    next_look_ = now + Thinning::kAsideInterval;
    left_ = Thinning::kAsideFrames;
  }
  if (left_ == 0 || aside_.empty()) {
    left_ = 0;
    return nullptr;
  }
  --left_;
  std::unique_ptr<Packet> packet = std::move(aside_.front());
  aside_.pop_front();
  return packet;
}

}  // namespace cluster::sim
