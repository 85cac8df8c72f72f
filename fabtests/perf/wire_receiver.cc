#include "wire_receiver.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <stdexcept>

#include "wire_sender.h"

namespace perf {
namespace {

constexpr std::size_t kBlockBytes = 1 << 20;
constexpr std::size_t kFrameMax = 65600;
constexpr int kReceiveBuffer = 64 << 20;

std::atomic_ref<std::uint32_t> status_of(char* slot) {
  return std::atomic_ref<std::uint32_t>(reinterpret_cast<tpacket2_hdr*>(slot)->tp_status);
}

/// UDP over IPv4, whole and without options, to this port, that came through this interface.
void attach_port_filter(int socket, unsigned index, std::uint16_t port) {
  const auto where = static_cast<std::uint32_t>(SKF_AD_OFF + SKF_AD_IFINDEX);
  sock_filter program[] = {BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 12),
                           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_IP, 0, 11),
                           BPF_STMT(BPF_LD | BPF_W | BPF_ABS, where),
                           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, index, 0, 9),
                           BPF_STMT(BPF_LD | BPF_B | BPF_ABS, ETH_HLEN),
                           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x45, 0, 7),
                           BPF_STMT(BPF_LD | BPF_H | BPF_ABS, ETH_HLEN + 6),
                           BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x3fff, 5, 0),
                           BPF_STMT(BPF_LD | BPF_B | BPF_ABS, ETH_HLEN + 9),
                           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, 3),
                           BPF_STMT(BPF_LD | BPF_H | BPF_ABS, ETH_HLEN + 22),
                           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ntohs(port), 0, 1),
                           BPF_STMT(BPF_RET | BPF_K, 0xffffffff),
                           BPF_STMT(BPF_RET | BPF_K, 0)};
  const sock_fprog filter{sizeof program / sizeof program[0], program};
  if (::setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) != 0) fail("filter");
}

/// A socket that is bound to everything would be shown what is sent, too.
void bind_tap(int socket, const WireChoice& choice, int type) {
  const int on = 1;
  const bool everything = choice.tap == Tap::interface;
  if (everything && ::setsockopt(socket, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on) != 0) {
    fail("PACKET_IGNORE_OUTGOING");
  }
  bind_to(socket, choice.tap == Tap::type ? "" : choice.interface, everything ? ETH_P_ALL : type);
}

}  // namespace

WireReceiver::WireReceiver(const WireChoice& choice, const WireAddress& own, unsigned window) {
  socket_ = ::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
  if (socket_ < 0) fail("AF_PACKET");
  const bool udp = choice.frames_as == FramesAs::udp;
  if (!udp && choice.tap == Tap::interface) throw std::invalid_argument("--tap interface: UDP only");
  if (udp) attach_port_filter(socket_, ::if_nametoindex(choice.interface.c_str()), own.port);
  if (choice.receive_by == ReceiveBy::ring) {
    open_ring(choice, window);
  } else {
    memory_.resize(kFrameMax);
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUFFORCE, &kReceiveBuffer, sizeof kReceiveBuffer);
  }
  bind_tap(socket_, choice, udp ? ETH_P_IP : kExperimentalType);
}

WireReceiver::~WireReceiver() {
  if (ring_ != nullptr) ::munmap(ring_, ring_bytes_);
  ::close(socket_);
}

void WireReceiver::open_ring(const WireChoice& choice, unsigned window) {
  const std::size_t per_block = kBlockBytes / choice.slot_bytes;
  const std::size_t blocks = (choice.slots + per_block - 1) / per_block;
  if (blocks * per_block < window + std::size_t{2})
    throw std::invalid_argument("the ring is too short for the window");
  const int version = TPACKET_V2;
  const tpacket_req ring{static_cast<unsigned>(kBlockBytes), static_cast<unsigned>(blocks), choice.slot_bytes,
                         static_cast<unsigned>(blocks * per_block)};
  if (::setsockopt(socket_, SOL_PACKET, PACKET_VERSION, &version, sizeof version) != 0 ||
      ::setsockopt(socket_, SOL_PACKET, PACKET_RX_RING, &ring, sizeof ring) != 0) {
    fail("ring to receive from");
  }
  ring_bytes_ = kBlockBytes * blocks;
  void* at = ::mmap(nullptr, ring_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, socket_, 0);
  if (at == MAP_FAILED) fail("mmap");
  ring_ = static_cast<char*>(at);
  for (std::size_t i = 0; i < blocks * per_block; ++i) {
    slots_.push_back(ring_ + i / per_block * kBlockBytes + i % per_block * choice.slot_bytes);
  }
}

std::span<const char> WireReceiver::next_in_ring() {
  if (held_ != nullptr) status_of(held_).store(TP_STATUS_KERNEL, std::memory_order_release);
  held_ = slots_[next_];
  next_ = next_ + 1 == slots_.size() ? 0 : next_ + 1;
  while ((status_of(held_).load(std::memory_order_acquire) & TP_STATUS_USER) == 0) {
  }
  const auto* header = reinterpret_cast<const tpacket2_hdr*>(held_);
  if (header->tp_snaplen != header->tp_len) throw std::runtime_error("a slot is too short for its frame");
  return {held_ + header->tp_mac, header->tp_snaplen};
}

std::span<const char> WireReceiver::receive() {
  if (!slots_.empty()) return next_in_ring();
  for (;;) {
    const ssize_t size = ::recv(socket_, memory_.data(), memory_.size(), MSG_DONTWAIT);
    if (size >= 0) return {memory_.data(), static_cast<std::size_t>(size)};
    if (errno != EAGAIN && errno != EINTR) fail("recv");
  }
}

void WireReceiver::receive_to(std::span<const iovec> places) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(places.data());
  message.msg_iovlen = places.size();
  while (::recvmsg(socket_, &message, MSG_DONTWAIT) < 0) {
    if (errno != EAGAIN && errno != EINTR) fail("recvmsg");
  }
}

}  // namespace perf
