#include "wire_sender.h"

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "wire_headers.h"

namespace perf {
namespace {

constexpr std::size_t kBlockBytes = 1 << 20;
constexpr unsigned kBlocks = 4;
// A frame of at most 17 pages besides its headers, which is what the kernel takes, begins with a page;
// 18 of them are no power of two, or all slots would share a cache set.
constexpr std::size_t kPage = 4096, kSuperSlot = 18 * kPage;
constexpr std::size_t kSmallSlot = 2048, kSmallDataAt = 128;
constexpr int kSendBuffer = 8 << 20;

bool is_passing(int error) { return error == ENOBUFS || error == EAGAIN || error == EINTR; }

std::atomic_ref<std::uint32_t> status_of(char* slot) {
  return std::atomic_ref<std::uint32_t>(reinterpret_cast<tpacket2_hdr*>(slot)->tp_status);
}

}  // namespace

void bind_to(int socket, const std::string& interface, int type) {
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(static_cast<std::uint16_t>(type));
  if (!interface.empty()) address.sll_ifindex = static_cast<int>(::if_nametoindex(interface.c_str()));
  if (::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) fail("bind");
}

WireSender::WireSender(const WireChoice& choice, std::size_t frame_max)
    : by_(choice.send_by), batch_(choice.send_by == SendBy::send ? 1 : choice.batch) {
  socket_ = ::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
  if (socket_ < 0) fail("AF_PACKET");
  const int bypass = choice.qdisc ? 0 : 1, vnet = choice.vnet_header ? 1 : 0;
  if (::setsockopt(socket_, SOL_PACKET, PACKET_QDISC_BYPASS, &bypass, sizeof bypass) != 0 ||
      ::setsockopt(socket_, SOL_PACKET, PACKET_VNET_HDR, &vnet, sizeof vnet) != 0 ||
      ::setsockopt(socket_, SOL_SOCKET, SO_SNDBUFFORCE, &kSendBuffer, sizeof kSendBuffer) != 0) {
    fail("packet socket");
  }
  if (by_ == SendBy::tx_ring) open_ring(frame_max);
  bind_to(socket_, choice.interface, 0);
  messages_.resize(batch_);
  parts_.resize(batch_);
}

WireSender::~WireSender() {
  if (ring_ != nullptr) ::munmap(ring_, ring_bytes_);
  ::close(socket_);
}

void WireSender::open_ring(std::size_t frame_max) {
  const bool small = frame_max + kSmallDataAt <= kSmallSlot;
  const std::size_t slot = small ? kSmallSlot : kSuperSlot;
  if (frame_max > kSuperSlot - kPage) throw std::invalid_argument("the frame is too long for the ring");
  data_at_ = small ? kSmallDataAt : kPage;
  const std::size_t per_block = kBlockBytes / slot;
  const int version = TPACKET_V2, has_offset = 1;
  const tpacket_req ring{static_cast<unsigned>(kBlockBytes), kBlocks, static_cast<unsigned>(slot),
                         static_cast<unsigned>(kBlocks * per_block)};
  if (::setsockopt(socket_, SOL_PACKET, PACKET_VERSION, &version, sizeof version) != 0 ||
      ::setsockopt(socket_, SOL_PACKET, PACKET_TX_HAS_OFF, &has_offset, sizeof has_offset) != 0 ||
      ::setsockopt(socket_, SOL_PACKET, PACKET_TX_RING, &ring, sizeof ring) != 0) {
    fail("ring to send from");
  }
  ring_bytes_ = kBlockBytes * kBlocks;
  void* at = ::mmap(nullptr, ring_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, socket_, 0);
  if (at == MAP_FAILED) fail("mmap");
  ring_ = static_cast<char*>(at);
  for (std::size_t i = 0; i < kBlocks * per_block; ++i) {
    slots_.push_back(ring_ + i / per_block * kBlockBytes + i % per_block * slot);
  }
}

void WireSender::add(std::span<const iovec> parts) {
  if (by_ == SendBy::tx_ring) {
    fill_slot(parts);
  } else {
    auto& mine = parts_[waiting_];
    std::copy(parts.begin(), parts.end(), mine.begin());
    msghdr& message = messages_[waiting_].msg_hdr;
    message = msghdr{};
    message.msg_iov = mine.data();
    message.msg_iovlen = parts.size();
  }
  if (++waiting_ == batch_) flush();
}

void WireSender::flush() {
  if (waiting_ == 0) return;
  switch (by_) {
    case SendBy::send: send_one(messages_[0].msg_hdr); break;
    case SendBy::sendmmsg: send_many(); break;
    case SendBy::tx_ring: start_ring(); break;
  }
  waiting_ = 0;
}

void WireSender::send_one(msghdr& message) {
  const iovec& first = message.msg_iov[0];
  const bool whole = message.msg_iovlen == 1;
  while ((whole ? ::send(socket_, first.iov_base, first.iov_len, MSG_DONTWAIT)
                : ::sendmsg(socket_, &message, MSG_DONTWAIT)) < 0) {
    if (!is_passing(errno)) fail("send");
  }
}

void WireSender::send_many() {
  for (unsigned done = 0; done < waiting_;) {
    const int sent = ::sendmmsg(socket_, &messages_[done], waiting_ - done, MSG_DONTWAIT);
    if (sent > 0) done += static_cast<unsigned>(sent);
    if (sent < 0 && !is_passing(errno)) fail("sendmmsg");
  }
}

void WireSender::fill_slot(std::span<const iovec> parts) {
  char* const slot = slots_[next_];
  next_ = next_ + 1 == slots_.size() ? 0 : next_ + 1;
  while (status_of(slot).load(std::memory_order_acquire) != TP_STATUS_AVAILABLE) {
  }
  std::size_t size = 0;
  for (const iovec& part : parts) {
    std::memcpy(slot + data_at_ + size, part.iov_base, part.iov_len);
    size += part.iov_len;
  }
  auto* header = reinterpret_cast<tpacket2_hdr*>(slot);
  header->tp_len = static_cast<std::uint32_t>(size);
  header->tp_mac = static_cast<std::uint16_t>(data_at_);
  status_of(slot).store(TP_STATUS_SEND_REQUEST, std::memory_order_release);
}

void WireSender::start_ring() {
  while (::send(socket_, nullptr, 0, MSG_DONTWAIT) < 0) {
    if (!is_passing(errno)) fail("send of the ring");
  }
}

}  // namespace perf
