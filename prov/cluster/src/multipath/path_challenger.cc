#include "multipath/path_challenger.h"

#include <algorithm>
#include <array>

#include "wire/frame_encoder.h"
#include "wire/segment.h"

namespace cluster::multipath {

void PathChallenger::challenge_ip_paths(Time now, link::Link& link, const Content& content) {
  while (const auto challenge = paths_.challenge_due(now)) {
    const wire::FrameKind kind =
        challenge->proven ? wire::FrameKind::keep_alive : wire::FrameKind::path_challenge;
    send(kind, content.frame_max, challenge->to, link, content);
    paths_.on_challenge_sent(now, challenge->path);
  }
}

void PathChallenger::challenge_ethertype_paths(Time now, link::Link& link, const Content& content) {
  while (const auto challenge = paths_.ethertype_challenge_due(now)) {
    send(wire::FrameKind::path_challenge, sizeof(wire::FrameHeader), challenge->to, link, content);
    paths_.on_challenge_sent(now, challenge->path);
  }
}

/// A frame of `size` bytes: header and, if there is space for it, one segment of padding.
void PathChallenger::send(wire::FrameKind kind, std::size_t size, const link::Path& to, link::Link& link,
                          const Content& content) {
  static constexpr std::array<std::byte, wire::kFrameMax / 8 + 1> zeros{};
  std::array<std::byte, sizeof(wire::FrameHeader) + wire::kSegmentHeaderMax> front;
  wire::FrameHeader& header = wire::header_at(front.data());
  header.kind = static_cast<std::uint8_t>(kind);
  header.session = kind == wire::FrameKind::path_challenge ? content.peer_session : 0;
  header.sequence = content.session;
  std::size_t filled = sizeof header;
  std::size_t left = 0;
  wire::Segment padding;
  padding.kind = wire::SegmentKind::padding;
  const std::size_t overhead = filled + wire::encoded_size(padding);
  if (size > overhead) {
    left = size - overhead;
    padding.length = static_cast<std::uint32_t>(left);
    filled += wire::encode(padding, front.data() + filled);
  }
  link::OutFrame out;
  out.path = &to;
  out.add(ConstBytes(front).first(filled));
  for (; left != 0; left -= out.pieces[out.count - 1].size()) {
    out.add(ConstBytes(zeros).first(std::min(left, zeros.size())));
  }
  wire::encode_frame(header, {out.pieces.data(), out.count});
  link.send_burst({&out, 1});
}

}  // namespace cluster::multipath
