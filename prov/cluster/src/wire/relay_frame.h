// What endpoints and relays exchange (relay/relay.h, docs/protocol.md 10). A relay forwards sealed frames
// between endpoints that have no common network. A frame on its way through a relay is unchanged. A RelayTag
// follows it in the same datagram:
//
//   sealed frame | RelayTag
//
// Thus the header of the frame is where the filters of the kernel look for it (os/port_filter.h). The tag
// names the peer: the receiver while the frame travels to the relay, and the sender while it travels on.
//
// An endpoint becomes a member of a relay by four frames of equal size:
//
//   endpoint -- relay_request {name, number} -----------------> relay
//   endpoint <-- relay_offer  {the same, cookie} --------------- relay   stores nothing
//   endpoint -- relay_join    {the same, cookie} -------------> relay    stores the member
//   endpoint <-- relay_joined {the same, number of the member} - relay
//
//   frame header | RelayBlock | SealTrailer
//
// The counter of the trailer is the number of the request. The tag of the trailer is an HMAC with the relay
// key of the job over everything before it (relay/relay_key.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/address.h"
#include "base/bytes.h"
#include "wire/endian.h"
#include "wire/frame.h"
#include "wire/opening.h"

namespace cluster::wire {

/// The first byte of a RelayTag. No frame begins with it.
inline constexpr std::uint8_t kRelayMagic = 0xC6;
/// An endpoint sets this number of hops. Each relay counts it down, and forwards no frame that arrives with 0
/// or a larger number. Therefore a frame passes only one relay, and no loop is possible.
inline constexpr std::uint8_t kRelayHops = 1;

struct RelayTag {
  std::uint8_t magic;
  std::uint8_t hops;  ///< how many relays may still forward the frame
  Le16 reserved;
  Le32 member;     ///< number that the relay has given to the endpoint on this side of the relay
  RailBlock peer;  ///< name of the endpoint on the other side of the relay
};
static_assert(sizeof(RelayTag) == 28);

struct RelayBlock {
  std::uint8_t key_id[8];  ///< id of the relay key
  Le64 cookie;             ///< 0 in a relay_request
  Le32 member;             ///< number of the member, in a relay_joined; otherwise 0
  RailBlock name;          ///< name of the endpoint
};
static_assert(sizeof(RelayBlock) == 40);

inline constexpr std::size_t kRelayFrameSize = sizeof(FrameHeader) + sizeof(RelayBlock) + sizeof(SealTrailer);
/// A whole frame of kind relay_request, relay_offer, relay_join or relay_joined.
using RelayFrame = std::array<std::byte, kRelayFrameSize>;

/// A decoded frame, in host byte order.
struct RelayMessage {
  FrameKind kind = FrameKind::relay_request;
  std::array<std::uint8_t, 8> key_id{};
  std::uint64_t cookie = 0;
  std::uint32_t member = 0;
  SocketAddress name;
  std::uint64_t number = 0;  ///< number of the request that began the exchange; never 0
};

/// Encodes the whole frame except its tag, which the caller writes behind relay_tagged_part().
RelayFrame encode(const RelayMessage& message);
/// Decodes a whole frame, without verifying its tag. Returns nothing if the frame is malformed.
std::optional<RelayMessage> decode_relay(ConstBytes frame);
/// Returns the part of a frame that the tag in its trailer covers.
inline ConstBytes relay_tagged_part(ConstBytes frame) {
  return frame.first(frame.size() - sizeof(SealTrailer::tag));
}

/// The field `largest_acked` of a keep-alive says on which way the keep-alive travels. A process does not
/// answer if the keep-alive has come on another way. Otherwise a host on the path could carry a question of
/// one way to the peer on the other, and the way in question would seem to work. Keep-alives that ask for no
/// way contain 0.
enum class AskedWay : std::uint32_t { any = 0, direct = 1, relayed = 2 };

/// Returns the length of the frame at the beginning of a datagram that a RelayTag follows, and copies the tag
/// to `tag`. Returns 0 if the datagram does not begin with a frame that has the flag kSealed,
/// and a tag. (A notice of the seal has this flag, but no trailer.)
std::size_t tagged_frame(ConstBytes datagram, RelayTag& tag);

}  // namespace cluster::wire
