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

#include "os/local_socket.h"
#include "os/packet_headers.h"
#include "os/port_filter.h"

namespace cluster::os {
namespace {

/// An upper bound on the bytes before the network header in a slot: the kernel's own header, the address, the
/// offload header and the Ethernet header.
constexpr std::size_t kSlotHead = TPACKET2_HDRLEN + 32 + kEthernetBytes;
/// The kernel does not align the bytes behind the offload header. With this padding, payloads are aligned to
/// words, as they would be without the offload header.
constexpr std::size_t kOffloadPadding = TPACKET_ALIGNMENT - sizeof(OffloadHeader);
static_assert(TPACKET_ALIGN(TPACKET2_HDRLEN + 16) + sizeof(OffloadHeader) + kOffloadPadding <= kSlotHead);
// Large enough for an IP packet of 64 KiB, the Ethernet header and the slot's own header. The size is a
// multiple of a cache line but not a power of two. If it were a power of two, the first lines of all slots
// would share one cache set.
constexpr std::size_t kSuperFrameSlot = 65664;
constexpr std::size_t kCacheLine = 64;
// The kernel allocates each block as a whole. The size must be a power of two.
constexpr std::size_t kBlockBytes = 1024 * 1024;
constexpr std::size_t kBlocksMax = 64;
/// Gives about 600 slots for small frames if there are 64 slots for super-frames.
constexpr std::size_t kSlotsPerSmallBlock = 64;
static_assert(kSuperFrameSlot % TPACKET_ALIGNMENT == 0 && kCacheLine % TPACKET_ALIGNMENT == 0);
static_assert(kSuperFrameSlot >= kSlotHead + 65535);

/// Returns the size of a slot that holds `bytes` behind its head. The size is an odd number of cache lines,
/// so that the slots do not share a cache set.
std::size_t slot_for(std::size_t bytes) {
  const std::size_t lines = (kSlotHead + bytes + kCacheLine - 1) / kCacheLine;
  return (lines | 1) * kCacheLine;
}

/// Makes the kernel write an offload header in front of each frame. The header says where joined frames end.
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

/// Attaches the filter before it binds the socket. An unbound socket of protocol 0 receives nothing, so no
/// frame enters the ring without passing the filter.
int set_up(int socket, int index, const SocketAddress& ours, const RingShape& shape, bool& offload_headers) {
  FilterProgram program = frames_for(ours, shape.ether_type);
  if (const int error = attach_filter(socket, SO_ATTACH_FILTER, program); error != 0) return error;
  offload_headers = shape.joined && ask_for_offload_headers(socket);
  const int version = TPACKET_V2;
  tpacket_req request{};
  request.tp_block_size = kBlockBytes;
  request.tp_block_nr = static_cast<unsigned>(shape.blocks);
  request.tp_frame_size = static_cast<unsigned>(shape.slot_bytes);
  request.tp_frame_nr = static_cast<unsigned>(shape.blocks * (kBlockBytes / shape.slot_bytes));
  if (setsockopt(socket, SOL_PACKET, PACKET_VERSION, &version, sizeof version) != 0 ||
      setsockopt(socket, SOL_PACKET, PACKET_RX_RING, &request, sizeof request) != 0) {
    return errno;
  }
  return bind_to(socket, index, shape.ether_type);
}

}  // namespace

RingShape RingShape::of_super_frames(SocketAddress::Family family, std::size_t slots) {
  constexpr std::size_t per_block = kBlockBytes / kSuperFrameSlot;
  const std::size_t blocks = (slots + per_block - 1) / per_block;
  return {ip_ether_type(family), kSuperFrameSlot, std::clamp<std::size_t>(blocks, 1, kBlocksMax), true};
}

RingShape RingShape::of_small_frames(std::size_t slots) {
  constexpr std::size_t largest = kHeadersMax - kEthernetBytes + link::kEthertypeFrameMax;
  return {kClusterEtherType, slot_for(largest),
          std::clamp<std::size_t>(slots / kSlotsPerSmallBlock, 1, kBlocksMax)};
}

std::unique_ptr<PacketRing> PacketRing::open(int index, const SocketAddress& ours, const RingShape& shape,
                                             const Environment& environment, int& error) {
  Descriptor socket(::socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  error = socket ? 0 : errno;
  if (!socket) return nullptr;
  bool offload_headers = false;
  error = set_up(socket.number(), index, ours, shape, offload_headers);
  if (error != 0) return nullptr;
  const std::size_t bytes = shape.blocks * kBlockBytes;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, socket.number(), 0);
  if (memory == MAP_FAILED) {
    error = errno;
    return nullptr;
  }
  madvise(memory, bytes, MADV_DONTFORK);  // a forked child would keep the socket open
  return std::unique_ptr<PacketRing>(new PacketRing(std::move(socket), index, ours, shape, offload_headers,
                                                    {static_cast<std::byte*>(memory), bytes}, environment));
}

PacketRing::PacketRing(Descriptor socket, int index, const SocketAddress& ours, const RingShape& shape,
                       bool offload_headers, std::span<std::byte> memory, const Environment& environment)
    : socket_(std::move(socket)),
      index_(index),
      ours_(ours),
      ether_type_(shape.ether_type),
      slot_bytes_(shape.slot_bytes),
      has_offload_headers_(offload_headers),
      memory_(memory),
      counters_(environment.counters),
      arrivals_(environment.clock) {
  const std::size_t per_block = kBlockBytes / slot_bytes_;
  for (std::size_t block = 0; block < memory.size(); block += kBlockBytes) {
    for (std::size_t i = 0; i < per_block; ++i) slots_.push_back(&memory[block + i * slot_bytes_]);
  }
}

PacketRing::~PacketRing() { munmap(memory_.data(), memory_.size()); }

std::atomic_ref<std::uint32_t> PacketRing::status_of(std::byte* slot) {
  return std::atomic_ref<std::uint32_t>(reinterpret_cast<tpacket2_hdr*>(slot)->tp_status);
}

void PacketRing::move_to(int index) {
  if (index != index_ && bind_to(socket_.number(), index, ether_type_) == 0) index_ = index;
}

bool PacketRing::waiting() const {
  return (status_of(slots_[next_]).load(std::memory_order_relaxed) & TP_STATUS_USER) != 0;
}

void PacketRing::release_slots() {
  for (; held_ != 0; --held_) {
    const std::size_t slot = (next_ + slots_.size() - held_) % slots_.size();
    status_of(slots_[slot]).store(TP_STATUS_KERNEL, std::memory_order_release);
  }
}

std::size_t PacketRing::receive(std::span<link::InFrame> frames) {
  release_slots();
  std::size_t count = 0;
  bool lost = false;
  while (count < frames.size() && held_ < slots_.size()) {
    std::byte* const slot = slots_[next_];
    const std::uint32_t status = status_of(slot).load(std::memory_order_acquire);
    if ((status & TP_STATUS_USER) == 0) break;
    if (count == 0) arrivals_.refresh();
    lost |= (status & TP_STATUS_LOSING) != 0;
    if (read_slot(slot, status, frames[count])) ++count;
    next_ = next_ + 1 == slots_.size() ? 0 : next_ + 1;
    ++held_;
  }
  if (lost) count_losses();
  return count;
}

bool PacketRing::read_slot(std::byte* slot, std::uint32_t status, link::InFrame& frame) {
  const auto& header = *reinterpret_cast<const tpacket2_hdr*>(slot);
  const std::size_t begin = header.tp_mac;
  const std::size_t size = header.tp_snaplen;
  const bool whole = size == header.tp_len && begin + size <= slot_bytes_ && (status & TP_STATUS_COPY) == 0;
  frame.arrived = arrivals_.time_of(std::chrono::seconds(header.tp_sec) + Duration(header.tp_nsec));
  if (whole && read_headers({slot + begin, size}, index_, frame)) {
    frame.segment = has_offload_headers_ ? segment_of(slot + begin) : 0;
    return true;
  }
  ++counters_.link_malformed;
  return false;
}

/// Returns the length of one frame if the kernel has joined several frames in the slot, or 0 for a single
/// frame. The slot contains only the headers of the first frame. The payloads of all joined frames stand
/// behind these headers.
std::size_t PacketRing::segment_of(const std::byte* ethernet_header) const {
  OffloadHeader header;
  std::memcpy(&header, ethernet_header - sizeof header, sizeof header);
  return header.gso_type == OffloadHeader::kGsoUdpL4 ? header.gso_size : 0;
}

void PacketRing::clear_errors() {
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(socket_.number(), SOL_SOCKET, SO_ERROR, &error, &size);
}

void PacketRing::thin(const link::Thinning& thinning) {
  FilterProgram program = frames_for(ours_, ether_type_, thinning);
  attach_filter(socket_.number(), SO_ATTACH_FILTER, program);
}

void PacketRing::count_losses() {
  tpacket_stats stats{};
  socklen_t size = sizeof stats;
  // Reading the statistics resets the kernel's count. As a result, TP_STATUS_LOSING is clear in later slots.
  if (getsockopt(socket_.number(), SOL_PACKET, PACKET_STATISTICS, &stats, &size) == 0) {
    counters_.link_ring_full += stats.tp_drops;
  }
}

std::optional<Descriptor> claim_ring(int index, SocketAddress::Family family, std::size_t rings) {
  const std::string prefix =
      "cluster-ring-1/" + std::to_string(index) + (family == SocketAddress::Family::v6 ? "/ipv6/" : "/ipv4/");
  for (std::size_t number = 0; number < rings; ++number) {
    int error = 0;
    Descriptor name = reserve_name(prefix + std::to_string(number), error);
    if (error != EADDRINUSE) return name;
  }
  return std::nullopt;
}

bool rings_know_segments() {
  utsname name{};
  std::pair<unsigned, unsigned> release;
  return uname(&name) == 0 && std::sscanf(name.release, "%u.%u", &release.first, &release.second) == 2 &&
         release >= std::pair(6u, 2u);
}

}  // namespace cluster::os
