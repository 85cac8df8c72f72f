// The opening block: the sender's identity and parameters. It stands in front of the sender's data until the
// sender knows that the peer has it, because any frame may be lost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/address.h"
#include "wire/endian.h"

namespace cluster::wire {

/// Epochs are smaller than this: real time in ns until the year 2116.
inline constexpr std::uint64_t kEpochEnd = std::uint64_t{1} << 62;

namespace feature {
inline constexpr std::uint32_t kEthertypePath = 1;  ///< the sender receives the EtherType path (link/link.h)
/// The TCP port with the number of the sender's UDP port is open exactly as long as its process lives
/// (link/process_probe.h).
inline constexpr std::uint32_t kKernelAnswers = 2;
/// The sender takes frames in parts (wire/frame.h: PartBlock).
inline constexpr std::uint32_t kFrameParts = 4;
/// The name of another endpoint of the sender's process stands behind the further addresses. Peers may
/// already know the process by that name (network/sibling_check.h).
inline constexpr std::uint32_t kSibling = 8;
/// The sender acknowledges late, as members of a team do (reliability/ack_delay.h).
inline constexpr std::uint32_t kAcksLate = 16;
}  // namespace feature

/// The layout on the wire. Newer versions append fields; readers skip those that they do not know.
struct OpeningBlock {
  Le16 size;                              ///< of this block, at least sizeof(OpeningBlock)
  std::uint8_t version_min, version_max;  ///< protocol versions the sender speaks
  Le32 session;                           ///< put this into frames to the sender; never 0
  Le64 epoch;                             ///< grows with each incarnation and session of an address
  std::uint8_t family;                    ///< of the sender's name: 4 or 6
  std::uint8_t rails;  ///< how many RailBlocks follow: one for each rail but that of the name
  Le16 port;
  Le32 scope;
  std::uint8_t ip[16];  ///< network byte order; IPv4 in the first four
  Le32 features;        ///< bits, see feature
  Le16 frame_max;       ///< largest frame the sender can receive, bytes
  Le16 window;          ///< frames beyond `ack` that the sender keeps
  Le64 token;           ///< of the session: the peer repeats it in its own opening
  Le64 echo;            ///< the token in the opening that this one answers; 0: none has come
};
static_assert(sizeof(OpeningBlock) == 64);

/// A further address of the sender, or the name of its sibling, behind the OpeningBlock.
struct RailBlock {
  std::uint8_t family;  ///< 4 or 6
  std::uint8_t reserved;
  Le16 port;
  std::uint8_t ip[16];  ///< network byte order; IPv4 in the first four
};
static_assert(sizeof(RailBlock) == 20);

/// Most addresses of one endpoint, its name included. Readers ignore further ones.
inline constexpr std::size_t kRailsMax = 8;

/// An opening, checked and in host byte order.
struct Opening {
  std::uint32_t session = 0;
  std::uint64_t epoch = 0;
  SocketAddress name;
  std::uint8_t rails = 0;  ///< how many RailBlocks follow: one for each rail but that of the name
  std::uint32_t features = 0;
  std::uint16_t frame_max = 0;
  std::uint16_t window = 0;
  std::uint64_t token = 0;
  std::uint64_t echo = 0;
};

void encode(const Opening& opening, OpeningBlock& out);
/// Reads a block. Returns its size in bytes with its RailBlocks, or 0 if it is invalid. Sets `rails` to the
/// RailBlocks in `in`, for read_rails().
std::size_t decode(ConstBytes in, Opening& out, ConstBytes& rails);

/// Returns true if an endpoint can have this address: it is unicast, no wildcard, and has a port.
bool is_endpoint_address(const SocketAddress& address);
SocketAddress address_of(const RailBlock& block, std::uint32_t scope);
/// Returns true if each block names an address that an endpoint can have.
bool valid_rails(ConstBytes blocks);

/// Returns true if the address is the name in the opening, or one of the further addresses behind it.
bool lists(const Opening& opening, ConstBytes rails, const SocketAddress& address);

/// Returns the sibling that a decoded opening names; empty if there is none.
SocketAddress read_sibling(const Opening& opening, ConstBytes rails);

RailBlock rail_block(const SocketAddress& address);
/// Returns the addresses in blocks that decode() has checked.
std::vector<SocketAddress> read_rails(ConstBytes blocks);

}  // namespace cluster::wire
