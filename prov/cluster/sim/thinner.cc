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
  if (!packet.bytes.empty()) std::memcpy(&header, packet.bytes.data(), std::min(packet.bytes.size(), sizeof header));
  const std::uint32_t session = header.session;
  const auto mark = static_cast<std::uint8_t>(session);
  const bool keep_alive = header.kind == static_cast<std::uint8_t>(wire::FrameKind::keep_alive);
  if (!thinning_.unmarked_aside || mark == thinning_.marks.member || mark == thinning_.marks.unknown) {
    if (keep_alive) return to_responder(now);
    const bool thinned = thinning_.unknown_shift != 0 && mark == thinning_.marks.unknown;
    return thinned && !one_in(thinning_.unknown_shift) ? Place::nowhere : Place::engine;
  }
  const bool answered = session == 0 ? !one_in(Thinning::kKeepAliveShift) : one_in(Thinning::kForeignKeepAliveShift);
  if (keep_alive && answered) return to_responder(now);
  return session != 0 && !one_in(Thinning::kUselessShift) ? Place::nowhere : Place::aside;
}

/// What is too much would wait for long; here it is lost.
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
