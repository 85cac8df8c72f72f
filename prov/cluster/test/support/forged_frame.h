// A frame that no engine has sent: whatever a host can write that knows the protocol and the addresses. It is
// sound for the gate.
#pragma once

#include <cstring>
#include <optional>
#include <vector>

#include "base/address.h"
#include "wire/admit.h"
#include "wire/control.h"
#include "wire/frame.h"
#include "wire/opening.h"
#include "wire/segment.h"

namespace cluster::test {

/// The epoch of an incarnation later than any.
inline constexpr std::uint64_t kLate = std::uint64_t{1} << 60;

struct ForgedFrame {
  wire::FrameHeader header{};
  std::optional<wire::Opening> opening;
  std::vector<SocketAddress> rails;      ///< further addresses in the opening
  std::optional<SocketAddress> sibling;  ///< that the opening names
  std::optional<wire::Segment> segment;
  std::vector<std::byte> payload;
  std::vector<std::byte> tail;  ///< whatever comes behind all that

  ForgedFrame() = default;
  /// The header of a genuine frame, to be altered.
  explicit ForgedFrame(ConstBytes genuine) { std::memcpy(&header, genuine.data(), sizeof header); }
  /// A first frame of a session that `name` wants, with a message of one byte.
  static ForgedFrame call(const SocketAddress& name, std::uint32_t session, std::uint64_t epoch) {
    ForgedFrame frame;
    frame.opening.emplace();
    frame.opening->name = name;
    frame.opening->session = session;
    frame.opening->epoch = epoch;
    frame.opening->frame_max = 1472;
    frame.opening->window = 64;
    frame.header.sequence = session;
    frame.carry({.kind = wire::SegmentKind::eager});
    return frame;
  }
  /// The frame that a caller sends after it has received the answer to its call.
  void take_up(const wire::Opening& answer) {
    header.session = answer.session;
    opening->echo = answer.token;
  }
  void carry(const wire::Segment& what, std::size_t bytes = 1) {
    segment = what;
    segment->length = static_cast<std::uint32_t>(bytes);
    payload.assign(bytes, std::byte{0xF0});
    header.flags = wire::frame_flag::kSequenced | wire::frame_flag::kAckNow |
                   (wire::ordered(what.kind) ? wire::frame_flag::kOrdered : std::uint8_t{0});
  }

  std::vector<std::byte> bytes() const {
    wire::FrameHeader head = header;
    std::vector<std::byte> frame(sizeof head);
    const auto append = [&frame](const void* from, std::size_t size) {
      const auto* const begin = static_cast<const std::byte*>(from);
      frame.insert(frame.end(), begin, begin + size);
    };
    if (opening) {
      head.flags = head.flags | wire::frame_flag::kOpening;
      wire::Opening said = *opening;
      said.rails = static_cast<std::uint8_t>(rails.size());
      if (sibling) said.features |= wire::feature::kSibling;
      wire::OpeningBlock block;
      wire::encode(said, block);
      append(&block, sizeof block);
      const auto append_address = [&append](const SocketAddress& address) {
        const wire::RailBlock further = wire::rail_block(address);
        append(&further, sizeof further);
      };
      for (const SocketAddress& rail : rails) append_address(rail);
      if (sibling) append_address(*sibling);
    }
    if (segment) {
      std::byte encoded[wire::kSegmentHeaderMax];
      append(encoded, wire::encode(*segment, encoded));
      append(payload.data(), payload.size());
    }
    append(tail.data(), tail.size());
    head.magic = wire::kMagic;
    head.version = wire::kVersion;
    if (head.kind == 0) head.kind = static_cast<std::uint8_t>(wire::FrameKind::flow);
    head.length = static_cast<std::uint16_t>(frame.size());
    head.checksum = 0;
    std::memcpy(frame.data(), &head, sizeof head);
    const ConstBytes whole = frame;
    head.checksum = wire::frame_checksum({&whole, 1});
    std::memcpy(frame.data(), &head, sizeof head);
    return frame;
  }
};

}  // namespace cluster::test
