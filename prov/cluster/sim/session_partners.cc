#include "sim/session_partners.h"

#include <cstring>
#include <utility>
#include <vector>

#include "wire/admit.h"
#include "wire/frame.h"
#include "wire/opening.h"

namespace cluster::sim {
namespace {

/// The session of ours that its opening names; 0 if there is none.
std::uint32_t own_session(const link::OutFrame& frame) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < frame.count; ++i) {
    bytes.insert(bytes.end(), frame.pieces[i].begin(), frame.pieces[i].end());
  }
  wire::FrameView view;
  return wire::admit(bytes, view) == wire::Refusal::none && view.has_opening ? view.opening.session : 0;
}

}  // namespace

void SessionPartners::read(ConstBytes frame) {
  wire::FrameView view;
  if (wire::admit(frame, view) != wire::Refusal::none || view.session == 0 || !view.has_opening) return;
  if (view.kind != wire::FrameKind::flow && view.kind != wire::FrameKind::fin) return;
  const auto partner = partners_.find(view.session);
  if (partner != partners_.end() && partner->second != view.opening.session) ++strangers_;
  if (claimed_by_.emplace(view.session, view.opening.session).second) {
    claims_.emplace(view.opening.session, view.session);
  }
}

void SessionPartners::sent(const link::OutFrame& frame) {
  wire::FrameHeader header;
  if (frame.pieces[0].size() < sizeof header) return;
  std::memcpy(&header, frame.pieces[0].data(), sizeof header);
  constexpr std::uint8_t of_a_partner = wire::frame_flag::kSequenced | wire::frame_flag::kAcknowledges;
  const std::uint32_t to = header.session;
  const bool of_a_flow = header.kind == static_cast<std::uint8_t>(wire::FrameKind::flow);
  // Without either of these flags it introduces somebody, which shows no belief.
  if (!of_a_flow || to == 0 || (header.flags & of_a_partner) == 0) return;
  if ((header.flags & wire::frame_flag::kOpening) != 0) {
    partners_.emplace(own_session(frame), to);
  } else if (const auto claim = claims_.find(to); claim != claims_.end()) {
    partners_.emplace(claim->second, to);
  }
}

std::uint64_t SessionPartners::take_strangers() { return std::exchange(strangers_, 0); }

}  // namespace cluster::sim
