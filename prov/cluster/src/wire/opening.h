// The opening block contains the sender's identity and parameters. Any frame may be lost, so the sender puts
// the block into every frame until it knows that the peer has received the block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/address.h"
#include "wire/endian.h"

namespace cluster::wire {

/// Epochs are smaller than this. They count real time in ns, which stays below this limit until the year
/// 2116.
inline constexpr std::uint64_t kEpochEnd = std::uint64_t{1} << 62;

namespace feature {
/// The sender receives frames on the EtherType path (link/link.h).
inline constexpr std::uint32_t kEthertypePath = 1;
/// A TCP port with the same number as the sender's UDP port is open exactly as long as the sender's process
/// exists (link/process_probe.h).
inline constexpr std::uint32_t kKernelAnswers = 2;
/// The sender can receive frames in parts (wire/frame.h: PartBlock).
inline constexpr std::uint32_t kFrameParts = 4;
/// The further addresses are followed by the name of another endpoint of the sender's process. Peers may
/// already know the process by that name (network/sibling_check.h).
inline constexpr std::uint32_t kSibling = 8;
/// The sender may delay its acknowledgements by more than kAckDelay (reliability/ack_delay.h).
inline constexpr std::uint32_t kAcksLate = 16;
/// On the EtherType path, the sender receives frames of up to link::kEthertypeFrameMax bytes.
inline constexpr std::uint32_t kEthertypeWhole = 64;
/// VerbsBlocks follow the further addresses and the sibling. They are within the size of the opening, after
/// all other blocks. So an endpoint that does not know this bit skips them.
inline constexpr std::uint32_t kVerbs = 128;
/// The sender can let an RDMA device read long messages (carrier/device_reads.h). Both sides must have this
/// feature before they exchange the segments that such reads need.
inline constexpr std::uint32_t kDeviceReads = 256;
}  // namespace feature

/// The layout on the wire. Newer versions append fields. Readers skip fields that they do not know.
struct OpeningBlock {
  Le16 size;                              ///< size of this block and of all blocks that belong to it
  std::uint8_t version_min, version_max;  ///< protocol versions that the sender supports
  Le32 session;                           ///< the session that frames to the sender must name; never 0
  Le64 epoch;                             ///< grows with each incarnation and session of a name
  std::uint8_t family;                    ///< address family of the sender's name: 4 or 6
  std::uint8_t rails;                     ///< number of further addresses: one for each further IP rail
  Le16 port;
  Le32 scope;
  std::uint8_t ip[16];  ///< network byte order; IPv4 in the first four
  Le16 features;        ///< bits, see namespace feature
  Le16 incarnation;     ///< random, the same in all openings of an incarnation; 0: the sender does not say
  Le16 frame_max;       ///< largest frame that the sender can receive, in bytes
  Le16 window;          ///< frames beyond `ack` that the sender can store
  Le64 token;           ///< token of the session; the peer repeats it in its own opening
  Le64 echo;            ///< the token in the opening that this one answers; 0: none has arrived
};
static_assert(sizeof(OpeningBlock) == 64);

/// A further address of the sender, or the name of its sibling. RailBlocks follow the OpeningBlock.
struct RailBlock {
  std::uint8_t family;  ///< 4 or 6
  std::uint8_t reserved;
  Le16 port;
  std::uint8_t ip[16];  ///< network byte order; IPv4 in the first four
};
static_assert(sizeof(RailBlock) == 20);

/// The largest number of addresses of one endpoint, including its name. Readers ignore the addresses beyond
/// this number.
inline constexpr std::size_t kRailsMax = 8;

/// A queue pair of the sender, on an RDMA device. It receives only frames that name a session.
struct VerbsBlock {
  std::uint8_t kind;  ///< kind of the GID (enum class Gid); readers skip unknown kinds
  std::uint8_t mtu;   ///< code of the longest datagram: 1 = 256 bytes, 2 = 512, ..., 5 = 4096
  std::uint8_t more;  ///< number of VerbsBlocks after this one
  std::uint8_t reserved;
  Le32 queue_pair;  ///< its number, below 2^24
  std::uint8_t gid[16];
};
static_assert(sizeof(VerbsBlock) == 24);

enum class Gid : std::uint8_t { roce_v2 = 1 };

/// The Q_Key of all queue pairs. It need not be secret, because the numbers of sessions protect the frames.
inline constexpr std::uint32_t kQueueKey = 0x2c1f0000;
/// The largest number of queue pairs that an endpoint names. Readers ignore the blocks beyond this number.
inline constexpr std::size_t kVerbsMax = 4;

constexpr bool is_queue_pair_number(std::uint32_t number) { return number != 0 && number < 1u << 24; }

/// A queue pair, and the size of the longest frame that it can receive.
struct VerbsAddress {
  SocketAddress address;
  std::size_t frame_max = 0;

  friend bool operator==(const VerbsAddress&, const VerbsAddress&) = default;
};

/// An opening that was checked, in host byte order.
struct Opening {
  std::uint32_t session = 0;
  std::uint64_t epoch = 0;
  SocketAddress name;
  std::uint8_t rails = 0;  ///< number of further addresses: one for each further IP rail
  std::uint8_t verbs = 0;  ///< number of VerbsBlocks that follow; set only for encoding
  std::uint32_t features = 0;
  std::uint16_t incarnation = 0;
  std::uint16_t frame_max = 0;
  std::uint16_t window = 0;
  std::uint64_t token = 0;
  std::uint64_t echo = 0;
};

void encode(const Opening& opening, OpeningBlock& out);
/// Reads an opening block. Returns its size in bytes, including all blocks that belong to it, or 0 if it is
/// invalid. Sets `rails` to the RailBlocks of the further addresses in `in`, for read_rails().
std::size_t decode(ConstBytes in, Opening& out, ConstBytes& rails);

/// Returns true if an endpoint can have this address: it is a unicast address, is not a wildcard, and has a
/// port.
bool is_endpoint_address(const SocketAddress& address);
SocketAddress address_of(const RailBlock& block, std::uint32_t scope);
/// Returns true if each block names an address that an endpoint can have.
bool valid_rails(ConstBytes blocks);

/// Returns true if the address is the name in the opening, or one of the further addresses after it.
bool lists(const Opening& opening, ConstBytes rails, const SocketAddress& address);

/// Returns the name of the sibling in a decoded opening, or an empty address if there is none.
SocketAddress read_sibling(const Opening& opening, ConstBytes rails);

RailBlock rail_block(const SocketAddress& address);
/// `more`: the number of blocks after this one.
VerbsBlock verbs_block(const VerbsAddress& queue_pair, std::size_t more);
/// Returns the queue pairs in a decoded opening whose kind of GID this version knows.
std::vector<VerbsAddress> read_verbs(const Opening& opening, ConstBytes rails);
/// Reads at most kRailsMax - 1 addresses from `blocks`, which decode() must have checked.
std::vector<SocketAddress> read_rails(ConstBytes blocks);

}  // namespace cluster::wire
