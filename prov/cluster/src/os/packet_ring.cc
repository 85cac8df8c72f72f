#include "os/packet_ring.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include "os/interfaces.h"
#include "os/packet_headers.h"
#include "os/port_filter.h"

namespace cluster::os {
namespace {

static_assert(TP_STATUS_USER == 1 && offsetof(tpacket2_hdr, tp_status) == 0);

/// An upper bound on the bytes before the network header in a slot: the kernel's own header, the address, the
/// offload header and the Ethernet header.
constexpr std::size_t kSlotHead = TPACKET2_HDRLEN + 32 + kEthernetBytes;
/// The kernel does not align the bytes after the offload header. With this padding, payloads are aligned to
/// words, as they would be without the offload header.
constexpr std::size_t kOffloadPadding = TPACKET_ALIGNMENT - sizeof(OffloadHeader);
static_assert(TPACKET_ALIGN(TPACKET2_HDRLEN + 16) + sizeof(OffloadHeader) + kOffloadPadding <= kSlotHead);
// A slot of this size holds an IP packet of 64 KiB, the Ethernet header and the slot's own header. The size
// is a multiple of a cache line but not a power of two. If it were a power of two, the first lines of all
// slots would share one cache set.
constexpr std::size_t kSuperFrameSlot = 65664;
constexpr std::size_t kCacheLine = 64;
constexpr std::size_t kBlocksMax = 64;
/// This number gives about 600 slots for small frames if there are 64 slots for super-frames.
constexpr std::size_t kSlotsPerSmallBlock = 64;
static_assert(kSuperFrameSlot % TPACKET_ALIGNMENT == 0 && kCacheLine % TPACKET_ALIGNMENT == 0);
static_assert(kSuperFrameSlot >= kSlotHead + 65535);

/// Returns the size of a slot with space for `bytes` bytes after its header. The size is an odd number of
/// cache lines, so that the starts of the slots spread over all cache sets.
std::size_t slot_for(std::size_t bytes) {
  const std::size_t lines = (kSlotHead + bytes + kCacheLine - 1) / kCacheLine;
  return (lines | 1) * kCacheLine;
}

/// Makes the kernel write an offload header before each frame. The header says where joined frames end.
/// Returns false if the kernel cannot write the header.
bool ask_for_offload_headers(int socket) {
  if (!rings_know_segments()) return false;
  const int on = 1;
  if (setsockopt(socket, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof on) != 0) return false;
  const unsigned padding = kOffloadPadding;
  // Ignores a failure, because without this option the socket is only slower.
  setsockopt(socket, SOL_PACKET, PACKET_RESERVE, &padding, sizeof padding);
  return true;
}

int bind_to(int socket, int index, std::uint16_t ether_type) {
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ether_type);
  address.sll_ifindex = index;
  return bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 ? 0 : errno;
}

RingKind kind_of(const RingShape& shape, const SocketAddress& ours) {
  if (shape.ether_type == kClusterEtherType) return RingKind::ethertype;
  return ours.family() == SocketAddress::Family::v6 ? RingKind::v6 : RingKind::v4;
}

/// Returns the layout of the rings of this shape. Assumes that a kernel of a sufficient version can write
/// offload headers.
RingLayout layout_of(const RingShape& shape) {
  return {static_cast<std::uint32_t>(shape.slot_bytes), shape.joined && rings_know_segments()};
}

/// Gives an unbound socket a ring, and binds the socket to the interface. The socket already has its filter.
/// A socket of protocol 0 receives nothing until it is bound. Therefore no frame enters the ring without
/// passing the filter.
int set_up(int socket, int index, const RingShape& shape, std::size_t blocks, bool offload_headers) {
  if (offload_headers && !ask_for_offload_headers(socket)) return errno;
  const int version = TPACKET_V2;
  tpacket_req request{};
  request.tp_block_size = kRingBlockBytes;
  request.tp_block_nr = static_cast<unsigned>(blocks);
  request.tp_frame_size = static_cast<unsigned>(shape.slot_bytes);
  request.tp_frame_nr = static_cast<unsigned>(blocks * (kRingBlockBytes / shape.slot_bytes));
  if (setsockopt(socket, SOL_PACKET, PACKET_VERSION, &version, sizeof version) != 0 ||
      setsockopt(socket, SOL_PACKET, PACKET_RX_RING, &request, sizeof request) != 0) {
    return errno;
  }
  return bind_to(socket, index, shape.ether_type);
}

/// Returns a seat in the group. If there is no group, returns a seat with a new socket that is in no group.
std::unique_ptr<RingSeat> take_seat(const std::shared_ptr<RingGroup>& group, const SocketAddress& ours,
                                    const RingShape& shape, std::size_t members_max, RingFailure& failure) {
  const RingKind kind = kind_of(shape, ours);
  if (group != nullptr)
    return RingGroup::take(group, kind, ours, layout_of(shape), shape.blocks, members_max, failure.group);
  auto seat = std::make_unique<RingSeat>(nullptr, kind);
  seat->socket = Descriptor(::socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  seat->blocks = shape.blocks;
  failure.error = seat->socket ? 0 : errno;
  return failure.error == 0 ? std::move(seat) : nullptr;
}

}  // namespace

RingShape RingShape::of_super_frames(SocketAddress::Family family, std::size_t slots) {
  constexpr std::size_t per_block = kRingBlockBytes / kSuperFrameSlot;
  const std::size_t blocks = (slots + per_block - 1) / per_block;
  return {ip_ether_type(family), kSuperFrameSlot, std::clamp<std::size_t>(blocks, 1, kBlocksMax), true};
}

RingShape RingShape::of_small_frames(std::size_t slots) {
  constexpr std::size_t largest = kHeadersMax - kEthernetBytes + link::kEthertypeFrameMax;
  return {kClusterEtherType, slot_for(largest),
          std::clamp<std::size_t>(slots / kSlotsPerSmallBlock, 1, kBlocksMax)};
}

std::unique_ptr<PacketRing> PacketRing::open(int index, const SocketAddress& ours, const RingShape& shape,
                                             const std::shared_ptr<RingGroup>& group, std::size_t members_max,
                                             const Environment& environment, RingFailure& failure) {
  std::unique_ptr<RingSeat> seat = take_seat(group, ours, shape, members_max, failure);
  if (seat == nullptr) return nullptr;
  const int socket = seat->socket.number();
  FilterProgram filter = frames_for(ours, shape.ether_type);
  failure.error = attach_filter(socket, SO_ATTACH_FILTER, filter);
  if (failure.error == 0 && !seat->inherited)
    failure.error = set_up(socket, index, shape, seat->blocks, layout_of(shape).offload_headers);
  if (failure.error != 0) return nullptr;
  const std::size_t bytes = seat->blocks * kRingBlockBytes;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, socket, 0);
  if (memory == MAP_FAILED) {
    failure.error = errno;
    return nullptr;
  }
  madvise(memory, bytes, MADV_DONTFORK);  // a forked child would keep the socket open
  const bool inherited = seat->inherited;
  std::unique_ptr<PacketRing> ring(new PacketRing(std::move(seat), index, ours, shape,
                                                  {static_cast<std::byte*>(memory), bytes}, environment));
  if (group != nullptr && !group->enter(*ring->seat_, failure.group)) return nullptr;
  // enter() has replaced the program of the group. The kernel completes the replacement only after all frames
  // that the old program and the old filter accepted are in the ring. So empty(), called now, drops all these
  // frames.
  if (inherited) ring->empty();
  return ring;
}

PacketRing::PacketRing(std::unique_ptr<RingSeat> seat, int index, const SocketAddress& ours,
                       const RingShape& shape, std::span<std::byte> memory, const Environment& environment)
    : seat_(std::move(seat)),
      index_(index),
      ours_(ours),
      ether_type_(shape.ether_type),
      slot_bytes_(shape.slot_bytes),
      has_offload_headers_(layout_of(shape).offload_headers != 0),
      memory_(memory),
      counters_(environment.counters),
      arrivals_(environment.clock),
      next_known_(!seat_->inherited) {
  const std::size_t per_block = kRingBlockBytes / slot_bytes_;
  slots_.reserve(memory.size() / kRingBlockBytes * per_block);
  for (std::size_t block = 0; block < memory.size(); block += kRingBlockBytes) {
    for (std::size_t i = 0; i < per_block; ++i) slots_.push_back(&memory[block + i * slot_bytes_]);
  }
}

PacketRing::~PacketRing() { munmap(memory_.data(), memory_.size()); }

/// Gives all slots back to the kernel, and so drops the frames in them.
void PacketRing::empty() {
  for (std::byte* const slot : slots_) status_of(slot).store(TP_STATUS_KERNEL, std::memory_order_release);
}

/// Finds the first filled slot: the filled slot that follows a slot which the kernel has not filled yet. If
/// all slots are filled, their order is unknown, and the function drops all frames.
bool PacketRing::find_first() {
  const auto filled = [&](std::size_t i) {
    return (status_of(slots_[i]).load(std::memory_order_acquire) & TP_STATUS_USER) != 0;
  };
  std::size_t count = 0;
  for (std::size_t i = 0; i < slots_.size() && !next_known_; ++i) {
    if (!filled(i)) continue;
    ++count;
    next_known_ = !filled((i + slots_.size() - 1) % slots_.size());
    next_ = i;
  }
  if (count == slots_.size()) empty();
  return next_known_;
}

bool PacketRing::move_to(int index) {
  if (index == index_) return true;
  if (bind_to(descriptor(), index, ether_type_) != 0) return false;
  index_ = index;
  return true;
}

inline void PacketRing::release_slots() {
  for (; held_ != 0; --held_) {
    const std::size_t slot = next_ >= held_ ? next_ - held_ : next_ + slots_.size() - held_;
    status_of(slots_[slot]).store(TP_STATUS_KERNEL, std::memory_order_release);
  }
}

std::size_t PacketRing::receive(std::span<link::InFrame> frames, const std::vector<SocketAddress>& own) {
  if (!next_known_ && !find_first()) [[unlikely]]
    return 0;
  release_slots();
  const std::size_t slots = slots_.size();
  std::size_t count = 0;
  bool lost = false;
  while (count < frames.size() && held_ < slots) {
    std::byte* const slot = slots_[next_];
    const std::uint32_t status = status_of(slot).load(std::memory_order_acquire);
    if ((status & TP_STATUS_USER) == 0) break;
    if (count == 0) arrivals_.refresh();
    lost |= (status & TP_STATUS_LOSING) != 0;
    if (read_slot(slot, status, own, frames[count])) ++count;
    next_ = next_ + 1 == slots ? 0 : next_ + 1;
    ++held_;
  }
  if (lost) count_losses();
  return count;
}

inline bool PacketRing::read_slot(std::byte* slot, std::uint32_t status,
                                  const std::vector<SocketAddress>& own, link::InFrame& frame) {
  const auto& header = *reinterpret_cast<const tpacket2_hdr*>(slot);
  const std::size_t begin = header.tp_mac;
  const std::size_t size = header.tp_snaplen;
  const bool whole = size == header.tp_len && begin + size <= slot_bytes_ && (status & TP_STATUS_COPY) == 0;
  frame.arrived = arrivals_.time_of(std::chrono::seconds(header.tp_sec) + Duration(header.tp_nsec));
  const Bytes bytes{slot + begin, size};
  if (!whole) {
    ++counters_.link_malformed;
    return false;
  }
  if (!last_.read(bytes, frame) && !read_source(bytes, own, frame)) return false;
  frame.segment = has_offload_headers_ ? segment_of(slot + begin) : 0;
  return true;
}

/// Reads the headers of a frame if they differ from those of the previous frame.
bool PacketRing::read_source(Bytes bytes, const std::vector<SocketAddress>& own, link::InFrame& frame) {
  frame.from = {};
  if (!read_headers(bytes, index_, frame)) {
    ++counters_.link_malformed;
    return false;
  }
  if (has_host(own, frame.from.to)) {
    ++counters_.refused_malformed;
    return false;
  }
  last_.remember(bytes, frame);
  return true;
}

/// Returns the length of one frame if the kernel has joined several frames in the slot, or 0 for a single
/// frame. The slot contains only the headers of the first frame. The payloads of all joined frames follow
/// these headers.
std::size_t PacketRing::segment_of(const std::byte* ethernet_header) const {
  OffloadHeader header;
  std::memcpy(&header, ethernet_header - sizeof header, sizeof header);
  return header.gso_type == OffloadHeader::kGsoUdpL4 ? header.gso_size : 0;
}

bool PacketRing::readdress(const SocketAddress& ours) {
  ours_ = ours;
  std::string reason;
  return seat_->group == nullptr || seat_->group->readdress(*seat_, ours, reason);
}

void PacketRing::clear_errors() {
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(descriptor(), SOL_SOCKET, SO_ERROR, &error, &size);
}

void PacketRing::thin(const link::Thinning& thinning) {
  FilterProgram program = frames_for(ours_, ether_type_, thinning);
  attach_filter(descriptor(), SO_ATTACH_FILTER, program);
}

void PacketRing::count_losses() {
  tpacket_stats stats{};
  socklen_t size = sizeof stats;
  // Reading the statistics resets the kernel's count. As a result, TP_STATUS_LOSING is clear in later slots.
  if (getsockopt(descriptor(), SOL_PACKET, PACKET_STATISTICS, &stats, &size) == 0) {
    counters_.link_ring_full += stats.tp_drops;
  }
}

bool rings_know_segments() {
  utsname name{};
  std::pair<unsigned, unsigned> release;
  return uname(&name) == 0 && std::sscanf(name.release, "%u.%u", &release.first, &release.second) == 2 &&
         release >= std::pair(6u, 2u);
}

}  // namespace cluster::os
