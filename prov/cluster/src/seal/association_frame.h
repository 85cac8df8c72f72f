// Association requests, responses and notices as they lie on the wire. A request or response is
//
//   frame header | AssociationBlock | RailBlocks of its sender, the name first | SealTrailer
//
// The trailer has the number of the request as its counter, and an HMAC over everything before the tag. A notice (association_unknown) is
// a header alone. It quotes what was refused, and nothing in it is trusted.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "seal/association.h"
#include "wire/frame.h"
#include "wire/opening.h"

namespace cluster::seal {

/// As it lies on the wire.
struct AssociationBlock {
  std::uint8_t key_id[8];
  std::uint8_t salt[16];       ///< of the sender
  std::uint8_t peer_salt[16];  ///< response: of the requester; request: 0
  std::uint8_t mode;
  std::uint8_t prefers_aes;  ///< 1: AES-GCM is the faster cipher there
  std::uint8_t addresses;    ///< RailBlocks that follow
  std::uint8_t reserved;
  wire::RailBlock to;  ///< the address that the sender sends this to
};
static_assert(sizeof(AssociationBlock) == 64);

/// The same, in host terms.
struct AssociationFrame {
  wire::FrameKind kind = wire::FrameKind::association_request;
  KeyId key_id{};
  Mode mode = Mode::auth;
  Party sender;
  Salt peer_salt{};
  SocketAddress to;
  std::uint64_t number = 0;
};

/// The frame without its tag, which is its end: the caller sets it to the HMAC of everything before.
std::vector<std::byte> encode(const AssociationFrame& frame);
inline std::size_t tagged_size(ConstBytes frame) { return frame.size() - sizeof(wire::SealTrailer::tag); }

/// `bytes` is one whole frame of a kind that is handled in seal/. Nothing if it is malformed. What it returns is not authentic yet.
/// `scope`: of link-local addresses, on this node.
std::optional<AssociationFrame> decode(ConstBytes bytes, std::uint32_t scope);

/// "The frame with this header does not open here, ask for an association."
wire::FrameHeader make_notice(const wire::FrameHeader& refused);

}  // namespace cluster::seal
