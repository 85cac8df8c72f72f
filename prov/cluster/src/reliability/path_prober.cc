#include "reliability/path_prober.h"

#include "reliability/frame_body.h"
#include "wire/frame_encoder.h"

namespace cluster::reliability {

void PathProber::send_challenges(Time now, link::Link& link, const Turn& turn) {
  if (paths_.size() > 1 && (turn.sent_any || turn.new_paths)) challenge_paths(now, link);
  if (!handshake_.ethertype_negotiated() || !turn.sent_any || turn.sent < kFramesBeforeEthertype) return;
  // Not before the path's MTU is known: the frame that finds it out must not take the EtherType path.
  if (path_mtu_.settled(handshake_.link_frame_max())) challenge_ethertype_paths(now, link);
}

/// A path has to carry what the flow sends: so the challenge is as long as its longest frame.
void PathProber::challenge_paths(Time now, link::Link& link) {
  while (const std::optional<std::size_t> number = paths_.path_to_challenge(now)) {
    const link::Path path = paths_.challenge_path(*number);
    const bool validated = paths_[*number].validator.proven();
    send(validated ? wire::FrameKind::probe : wire::FrameKind::trial, handshake_.frame_max(), path, link);
    paths_.asked(now, *number);
  }
}

/// The peer's engine answers over the EtherType path too, so both directions are seen to work.
void PathProber::challenge_ethertype_paths(Time now, link::Link& link) {
  while (const std::optional<std::size_t> number = paths_.ethertype_to_challenge(now)) {
    link::Path path = paths_[*number].path;
    path.ethertype = true;
    send(wire::FrameKind::trial, sizeof(wire::FrameHeader), path, link);
    paths_.ethertype_challenged(now, *number);
  }
}

void PathProber::send(wire::FrameKind kind, std::size_t size, const link::Path& path,
                      link::Link& link) const {
  FrameBody padding(wire::kSegmentHeaderMax);
  if (size > sizeof(wire::FrameHeader)) padding.set_padding(size - sizeof(wire::FrameHeader));
  std::byte* const start = padding.segments() - sizeof(wire::FrameHeader);
  wire::FrameHeader header{};
  header.kind = static_cast<std::uint8_t>(kind);
  header.session = kind == wire::FrameKind::trial ? handshake_.peer_session() : 0;
  header.sequence = handshake_.session();
  link::OutFrame out;
  out.path = &path;
  out.add({start, sizeof header + padding.filled});
  for (std::size_t i = 0; i < padding.payload_pieces; ++i) out.add(padding.payload[i]);
  wire::encode_frame(header, start, {out.pieces.data(), out.count});
  link.send_burst({&out, 1});
}

}  // namespace cluster::reliability
